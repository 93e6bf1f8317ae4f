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

import msgspec

from podling.kubelet.host.cgroups import CgroupLimits
from podling.kubelet.pod.actions import Action, StartContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.lifecycle import PodState
from podling.model.types.container import ResourceRequirements

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_nanoseconds(nanoseconds: int) -> datetime:
    """A time of the runtime protocol (ns since the epoch, 0 when unset: then the epoch itself)."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


class ContainerState(Enum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ObservedSandbox(msgspec.Struct, frozen=True):
    """One sandbox of the pod."""

    id: str
    attempt: int
    created_at: datetime
    ready: bool
    ips: tuple[str, ...] = ()
    stopped: bool = False
    """Its stop has succeeded since this kubelet started, so its network is torn down. A sandbox that is only
    not `ready` may still hold an address."""

    @property
    def usable(self) -> bool:
        return self.ready and not self.stopped


class ObservedContainer(msgspec.Struct, frozen=True):
    """One instance of a container. `type`, `hash`, `crashes`, `round` and `resources` come from the labels
    and annotations that `cri_config/container.py` wrote."""

    id: str
    name: str
    type: ContainerType
    sandbox_id: str
    attempt: int
    """The restart count."""
    state: ContainerState
    created_at: datetime
    started_at: datetime = _EPOCH
    finished_at: datetime = _EPOCH
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    """The runtime's, or after an exit the termination message."""
    image: str = ""
    image_id: str = ""
    hash: str = ""
    """Of the definition it was made from (`plan/restart.py`); "" if no kubelet of ours made it."""
    crashes: int = 0
    """Consecutive failures before this instance (`plan/restart.py`)."""
    round: str = ""
    """The restart generation it was made in (`plan/restart.py`)."""
    user: tuple[int, int, tuple[int, ...]] | None = None
    """uid, gid and supplemental groups of the first process."""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    """The actuated resources: those the runtime was last given. Shared, never to be changed."""
    sealed_mounts: frozenset[str] = frozenset()
    """Container paths of the mounts that are recursively read-only."""

    @property
    def running(self) -> bool:
        return self.state is ContainerState.RUNNING

    @property
    def exited(self) -> bool:
        return self.state is ContainerState.EXITED

    @property
    def lost(self) -> bool:
        """The runtime does not know its state (CONTAINER_UNKNOWN)."""
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
    """The last of some consecutive failures to start a container, to create the sandbox, or to actuate a
    resize. Forgotten as soon as it succeeds."""

    reason: str
    """The waiting reason in the status: ErrImagePull, InvalidImageName, ErrImageNeverPull,
    CreateContainerConfigError, CreateContainerError, RunContainerError ..."""
    message: str
    count: int
    """How many of the failures count for the back-off (`StartError.counts`)."""
    at: datetime
    instance: str = ""
    """Id of the container that was created and could not be started. Its end counts as any other
    (CrashLoopBackOff)."""


class ProbeResult(msgspec.Struct, frozen=True):
    """The results of the probes of one instance. An instance without probes has no entry."""

    started: bool = True
    """The startup probe has passed."""
    ready: bool = True
    alive: bool = True
    """False once the liveness or startup probe has reached its failureThreshold."""
    message: str = ""
    """Which probe failed, unless `alive`."""
    grace_seconds: int | None = None
    """The failed probe's own terminationGracePeriodSeconds."""


UNPROBED = ProbeResult()


class Termination(msgspec.Struct, frozen=True):
    """Why the pod as a whole must end, although neither its object nor its containers say so: removed from
    the API, evicted, preempted, or refused by the node."""

    reason: str = ""
    message: str = ""
    phase: str = ""
    """Failed, or "" for a pod that was removed from the API."""
    grace_seconds: int | None = None
    """None for the pod's own terminationGracePeriodSeconds."""
    is_disruption: bool = False
    """The kubelet ends it for the sake of others: condition DisruptionTarget."""


class PendingResize(msgspec.Struct, frozen=True):
    """The pod asks for resources that the node cannot give now or ever."""

    reason: str
    """Deferred or Infeasible."""
    message: str


class ObservedPod(msgspec.Struct, frozen=True, dict=True):
    """What is known of one pod at one moment."""

    sandboxes: tuple[ObservedSandbox, ...] = ()
    """Newest first."""
    containers: tuple[ObservedContainer, ...] = ()
    """Newest first."""
    past: tuple[ObservedContainer, ...] = ()
    """Containers that the runtime has no instance of: the newest one according to the pod's status
    (`plan/restart.py`)."""
    initialized_sandboxes: frozenset[str] = frozenset()
    """The `beginning`s for which initialization is recorded as complete (R-INIT-4)."""
    failures: Mapping[str, StartFailure] = MappingProxyType({})
    """By container name."""
    sandbox_failure: StartFailure | None = None
    probes: Mapping[str, ProbeResult] = MappingProxyType({})
    """By container id."""
    volumes_ready: bool = True
    """The volumes are set up: containers may be created."""
    volumes_error: str = ""
    """Why they are not set up, if known."""
    in_flight: frozenset[Action] = frozenset()
    """The actions being applied now."""
    restarting: frozenset[str] = frozenset()
    """Ids of containers that this kubelet stopped to start them again (changed definition, failed probe), or
    to free their name (a removed ephemeral container)."""
    pre_stopped: frozenset[str] = frozenset()
    """Ids of containers whose preStop hook has begun, or was skipped for want of time."""
    termination: Termination | None = None
    started_at: datetime | None = None
    """When this kubelet first saw the pod. A startTime in the pod's status takes precedence."""
    cleared: bool = False
    """The node is short of disk: no dead container is kept once the pod is over."""
    state: PodState = PodState.SYNCING
    """The furthest state that the pod has reached on this node."""
    pending_resize: PendingResize | None = None
    """The spec asks for resources that are not allocated."""
    resize_failure: StartFailure | None = None
    """The last consecutive failure to actuate allocated resources."""
    resized_generation: int = 0
    """The pod's metadata.generation that was allocated last; 0 if unknown."""
    pod_limits: CgroupLimits | None = None
    """What was last written to the pod's cgroup."""
    limits_settled: bool = True
    """`pod_limits` are final: they are those of the allocated resources."""
    actuated: ResourceRequirements | None = None
    """The pod's resources as a whole, when `limits_settled` was last true."""
    round: str = ""
    """The current restart generation (`plan/restart.py`)."""

    @cached_property
    def sandbox(self) -> ObservedSandbox | None:
        """The newest sandbox: the pod's, if it is ready."""
        return self.sandboxes[0] if self.sandboxes else None

    @property
    def is_prepared(self) -> bool:
        """Containers may be created, or were: the sandbox is usable, and the volumes are set up."""
        return bool(self.sandbox and self.sandbox.usable and (self.volumes_ready or self.containers))

    @property
    def ips(self) -> tuple[str, ...]:
        """The addresses of the newest sandbox while it is usable."""
        return self.sandboxes[0].ips if self.sandboxes and self.sandboxes[0].usable else ()

    def instances(self, name: str) -> tuple[ObservedContainer, ...]:
        """Every instance of a container that the runtime has, newest first."""
        return tuple(c for c in self.containers if c.name == name)

    @cached_property
    def newest(self) -> Mapping[str, ObservedContainer]:
        """By container name: the newest instance, `past` ones included, of whichever sandbox."""
        return {c.name: c for c in (*reversed(self.past), *reversed(self.containers))}

    @cached_property
    def current(self) -> Mapping[str, ObservedContainer]:
        """By container name: the newest instance, where it belongs to the newest sandbox and the current
        round."""
        sandbox = self.sandboxes[0].id if self.sandboxes else None
        return {
            name: container
            for name, container in self.newest.items()
            if container.sandbox_id == sandbox and container.round == self.round
        }

    def in_sandbox(self, container: ObservedContainer) -> bool:
        return bool(self.sandboxes) and container.sandbox_id == self.sandboxes[0].id

    def outdated(self, container: ObservedContainer) -> bool:
        """It belongs to the newest sandbox, but to an earlier round."""
        return self.in_sandbox(container) and container.round != self.round

    @cached_property
    def beginning(self) -> str:
        """What initialization is recorded for: `<sandbox id>`, or `<sandbox id>@<round>` after the first
        round."""
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

    def started(self, container: ObservedContainer) -> bool:
        return container.running and container.name not in self.starts and self.probe(container).started
