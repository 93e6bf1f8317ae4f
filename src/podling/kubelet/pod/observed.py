"""What is known of one pod at one moment: with the spec, the input of the planner and of the status.

Every field is a fact read from the runtime, the pod's directory or this kubelet's own recent attempts; none
is a decision. The values are immutable, so a plan and a status made from one observation agree. When the
kubelet dies, it loses `failures`, `probes`, `in_flight`, `restarting`, `pre_stopped` and
`ObservedSandbox.stopped`. A plan made without them repeats at worst something harmless (R-INIT-11).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import msgspec

from podling.kubelet.host.cgroup_limits import CgroupLimits
from podling.kubelet.pod.actions import Action, StartContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.lifecycle import PodState
from podling.model.types.container import ResourceRequirements

V = TypeVar("V")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def nothing() -> Mapping[str, V]:
    """An empty mapping no one can fill."""
    return MappingProxyType({})


def from_nanoseconds(nanoseconds: int) -> datetime:
    """A time of the runtime protocol (ns since the epoch, 0 when unset: then the epoch itself)."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


class ContainerState(Enum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ObservedSandbox(msgspec.Struct, frozen=True):
    """One sandbox of the pod. `stopped`: its stop has succeeded since this kubelet started, so its network
    is torn down (a sandbox that is only not `ready` may still hold an address)."""

    id: str
    attempt: int
    created_at: datetime
    ready: bool
    ips: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def usable(self) -> bool:
        return self.ready and not self.stopped


class ObservedContainer(msgspec.Struct, frozen=True):
    """One instance of a container. `attempt`, `hash`, `crashes` and `type` come from the labels and
    annotations that `container_config.py` wrote; `crashes` counts the failures in a row that came before
    this instance (`backoff.py`), `round` names the one it was made in (`rounds.py`). `reason` and
    `message` are the runtime's, or the termination message once it has exited. `user` is (uid, gid,
    supplemental groups) of the first process. `resources` is what the runtime was last told to give it;
    nobody may change it. `sealed_mounts` are the paths of its mounts that are read-only with all mounts
    below them."""

    id: str
    name: str
    type: ContainerType
    sandbox_id: str
    attempt: int
    state: ContainerState
    created_at: datetime
    started_at: datetime = _EPOCH
    finished_at: datetime = _EPOCH
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""
    image_id: str = ""
    hash: str = ""
    crashes: int = 0
    round: str = ""
    user: tuple[int, int, tuple[int, ...]] | None = None
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    sealed_mounts: frozenset[str] = frozenset()

    @property
    def running(self) -> bool:
        return self.state is ContainerState.RUNNING

    @property
    def exited(self) -> bool:
        return self.state is ContainerState.EXITED

    @property
    def lost(self) -> bool:
        """The runtime does not know what became of it."""
        return self.state is ContainerState.UNKNOWN

    @property
    def alive(self) -> bool:
        """It runs, or may run."""
        return self.running or self.lost

    @property
    def succeeded(self) -> bool:
        return self.state is ContainerState.EXITED and self.exit_code == 0

    @property
    def failed(self) -> bool:
        """Ended, or lost by the runtime, without success."""
        return self.lost or (self.exited and self.exit_code != 0)


class StartFailure(msgspec.Struct, frozen=True):
    """The last of some failures in a row to bring a container (or the sandbox) to life, of which `count`
    count against it (`faults.py`). `reason` is the waiting reason Kubernetes shows: ErrImagePull,
    InvalidImageName, ErrImageNeverPull, CreateContainerConfigError, CreateContainerError,
    RunContainerError ... Forgotten as soon as the thing starts. `instance` is the container that was made
    and could not be started: its end counts as any other does (CrashLoopBackOff)."""

    reason: str
    message: str
    count: int
    at: datetime
    instance: str = ""


class ProbeResult(msgspec.Struct, frozen=True):
    """What the probes say of one instance. No entry for an instance: nothing is probed.

    `started`: the startup probe has passed. `alive` is False once the liveness or
    startup probe failed for good; `message` then says which, `grace_seconds` is the probe's own
    terminationGracePeriodSeconds."""

    started: bool = True
    ready: bool = True
    alive: bool = True
    message: str = ""
    grace_seconds: int | None = None


UNPROBED = ProbeResult()


class Termination(msgspec.Struct, frozen=True):
    """Why the pod as a whole must end although neither its object nor its containers say so: it was removed
    from the API (`phase` ""), evicted, refused by the node (`phase` "Failed" with reason and
    message). `is_disruption`: it would have run on, had others not needed its room."""

    reason: str = ""
    message: str = ""
    phase: str = ""
    grace_seconds: int | None = None
    is_disruption: bool = False


class PendingResize(msgspec.Struct, frozen=True):
    """The pod asks for resources the node cannot give now (Deferred) or ever (Infeasible)."""

    reason: str
    message: str


class ObservedPod(msgspec.Struct, frozen=True, dict=True):
    """`sandboxes` and `containers` are newest first. `past`: the newest instance of each container of
    which the runtime has none, as the pod's status remembers it (`past.py`). `initialized_sandboxes`: the
    sandboxes, or rounds of one, in which initialization is recorded as completed (R-INIT-4). `failures`
    by container name; `probes` by container id. `in_flight`: the actions being applied now.
    `restarting`: ids this kubelet stopped in order to start them anew (changed definition, failed probe),
    or to free their name (an ephemeral one that was removed). `pre_stopped`: ids whose preStop hook was
    begun, if there was time. `volumes_ready`: containers may be created; `volumes_error` says why not,
    when it is known. `started_at`: when this kubelet first saw the pod, unless the pod's status already
    has a startTime. `cleared`: nothing is to be kept of it once it is over. `state`: how far in its life
    the pod has come here. `pending_resize`: what the spec asks for and the pod does not get;
    `resize_failure`: the last of the failures in a row to actuate what it got, in generation
    `resized_generation` of its object (0: not known). `pod_limits` is what was last written to the pod's
    cgroup, `limits_settled` that nothing else is to be, `actuated` what the pod asked for all in all when
    that was last so. `round` is the one that is to be (`rounds.py`)."""

    sandboxes: tuple[ObservedSandbox, ...] = ()
    containers: tuple[ObservedContainer, ...] = ()
    past: tuple[ObservedContainer, ...] = ()
    initialized_sandboxes: frozenset[str] = frozenset()
    failures: Mapping[str, StartFailure] = msgspec.field(default_factory=nothing)
    sandbox_failure: StartFailure | None = None
    probes: Mapping[str, ProbeResult] = msgspec.field(default_factory=nothing)
    volumes_ready: bool = True
    volumes_error: str = ""
    in_flight: frozenset[Action] = frozenset()
    restarting: frozenset[str] = frozenset()
    pre_stopped: frozenset[str] = frozenset()
    termination: Termination | None = None
    started_at: datetime | None = None
    cleared: bool = False
    state: PodState = PodState.SYNCING
    pending_resize: PendingResize | None = None
    resize_failure: StartFailure | None = None
    resized_generation: int = 0
    pod_limits: CgroupLimits | None = None
    limits_settled: bool = True
    actuated: ResourceRequirements | None = None
    round: str = ""

    @property
    def sandbox(self) -> ObservedSandbox | None:
        """The newest sandbox: the pod's, if it is ready."""
        return self.sandboxes[0] if self.sandboxes else None

    def instances(self, name: str) -> tuple[ObservedContainer, ...]:
        """Every instance of a container that the runtime has, newest first."""
        return tuple(c for c in self.containers if c.name == name)

    def newest(self, name: str) -> ObservedContainer | None:
        return next((c for c in (*self.containers, *self.past) if c.name == name), None)

    def current(self, name: str) -> ObservedContainer | None:
        """The newest instance that lives in the newest sandbox and its newest round."""
        newest = self.newest(name)
        return newest if newest and self.in_sandbox(newest) and not self.outdated(newest) else None

    def in_sandbox(self, container: ObservedContainer) -> bool:
        return bool(self.sandboxes) and container.sandbox_id == self.sandboxes[0].id

    def outdated(self, container: ObservedContainer) -> bool:
        """It is of the newest sandbox, but of an earlier round."""
        return self.in_sandbox(container) and container.round != self.round

    @property
    def beginning(self) -> str:
        """What initialization is recorded for: this sandbox, or this round of it."""
        sandbox = self.sandboxes[0].id if self.sandboxes else ""
        return f"{sandbox}@{self.round}" if self.round else sandbox

    def probe(self, container: ObservedContainer) -> ProbeResult:
        return self.probes.get(container.id, UNPROBED)

    def applying(self, *kinds: type[Action]) -> bool:
        """An action of one of these kinds is being applied."""
        return any(isinstance(action, kinds) for action in self.in_flight)

    @cached_property
    def starts(self) -> frozenset[str]:
        """The names of the containers whose start, postStart hook included, is being applied."""
        return frozenset(action.name for action in self.in_flight if isinstance(action, StartContainer))

    def starting(self, name: str) -> bool:
        return name in self.starts

    def started(self, container: ObservedContainer) -> bool:
        return container.running and not self.starting(container.name) and self.probe(container).started
