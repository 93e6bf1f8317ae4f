"""What a worker knows of its pod: what the runtime says (`observe`), and what has happened since
(`PodRecord`).

The runtime is first asked for lists and then for the status of each item, as only a status has addresses,
times and exit codes. Labels and annotations say which pod and which container an item is of.

`PodRecord.observed()` freezes what is known for the planner and the status. An exit learnt from an event is
final: a later answer of the runtime that the container is still running is out of date and is ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import NOT_FOUND, Runtime, RuntimeFault
from podling.kubelet.cri_config.container import (
    CONTAINER_NAME,
    CONTAINER_TYPE,
    CRASHES,
    HASH,
    POD_NAME,
    POD_NAMESPACE,
    POD_UID,
    ROUND,
    annotated_resources,
    number,
)
from podling.kubelet.host.cgroups import CgroupLimits
from podling.kubelet.pod.actions import Action
from podling.kubelet.pod.containers import StartError, type_of_label
from podling.kubelet.pod.observed import (
    ContainerState,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    PendingResize,
    StartFailure,
    Termination,
    from_nanoseconds,
)
from podling.model.types.container import ResourceRequirements
from podling.process.waits import Backoff

T = TypeVar("T")
_Listed = TypeVar("_Listed", pb.PodSandbox, pb.Container)
_Made = TypeVar("_Made", ObservedSandbox, ObservedContainer)

log = logging.getLogger(__name__)

AT_ONCE = 16
RETRY = Backoff(0.1, 5.0)

OOM_KILLED = "OOMKilled"
KILLED = 137

_STATES = {
    pb.CONTAINER_CREATED: ContainerState.CREATED,
    pb.CONTAINER_RUNNING: ContainerState.RUNNING,
    pb.CONTAINER_EXITED: ContainerState.EXITED,
}
_PROGRESS = {
    ContainerState.CREATED: 0,
    ContainerState.UNKNOWN: 1,
    ContainerState.RUNNING: 1,
    ContainerState.EXITED: 2,
}
"""A container never goes back; `UNKNOWN` and `RUNNING` may take turns while a runtime recovers."""


class RuntimePod(msgspec.Struct):
    """What the runtime has of one pod. Names are from the labels of whatever was found first; `statuses` are
    the containers in the runtime's own words."""

    namespace: str
    name: str
    sandboxes: list[ObservedSandbox] = msgspec.field(default_factory=list)
    containers: list[ObservedContainer] = msgspec.field(default_factory=list)
    statuses: list[pb.ContainerStatus] = msgspec.field(default_factory=list)

    def ids(self) -> Iterator[str]:
        yield from (sandbox.id for sandbox in self.sandboxes)
        yield from (container.id for container in self.containers)


async def observe(runtime: Runtime, uid: str = "") -> dict[str, RuntimePod]:
    """All pods, or one, by uid. What disappears while it is being asked about is not there."""
    labels = {POD_UID: uid} if uid else None
    sandboxes, containers = await asyncio.gather(
        runtime.list_pod_sandbox(labels), runtime.list_containers(labels)
    )
    pods: dict[str, RuntimePod] = {}
    limit = asyncio.Semaphore(AT_ONCE)
    found_sandboxes, found_containers = await asyncio.gather(
        asyncio.gather(*(_present(limit, runtime.pod_sandbox_status(s.id)) for s in _ours(sandboxes))),
        asyncio.gather(*(_present(limit, runtime.container_status(c.id)) for c in _ours(containers))),
    )
    owners = {container.id: container.pod_sandbox_id for container in containers}
    for sandbox in filter(None, found_sandboxes):
        _pod(pods, sandbox.labels).sandboxes.append(observed_sandbox(sandbox))
    for container in filter(None, found_containers):
        pod = _pod(pods, container.labels)
        pod.containers.append(observed_container(container, owners[container.id]))
        pod.statuses.append(container)
    return pods


async def observe_until_answered(runtime: Runtime, uid: str = "") -> dict[str, RuntimePod]:
    """As `observe`, asking again until the runtime answers."""
    wait = RETRY.begin()
    while True:
        try:
            return await observe(runtime, uid)
        except RuntimeFault as fault:
            log.warning("the runtime cannot say what it runs: %s", fault)
        await asyncio.sleep(wait.next())


def observed_sandbox(status: pb.PodSandboxStatus) -> ObservedSandbox:
    network = status.network
    ips = (network.ip, *(more.ip for more in network.additional_ips))
    return ObservedSandbox(
        id=status.id,
        attempt=status.metadata.attempt,
        created_at=from_nanoseconds(status.created_at),
        ready=status.state == pb.SANDBOX_READY,
        ips=tuple(filter(None, ips)),
    )


def observed_container(status: pb.ContainerStatus, sandbox_id: str) -> ObservedContainer:
    annotations = dict(status.annotations)
    user, has_user = status.user.linux, status.user.HasField("linux")
    return ObservedContainer(
        id=status.id,
        name=status.labels.get(CONTAINER_NAME) or status.metadata.name,
        type=type_of_label(status.labels.get(CONTAINER_TYPE, "")),
        sandbox_id=sandbox_id,
        attempt=status.metadata.attempt,
        state=_STATES.get(status.state, ContainerState.UNKNOWN),
        created_at=from_nanoseconds(status.created_at),
        started_at=from_nanoseconds(status.started_at),
        finished_at=from_nanoseconds(status.finished_at),
        exit_code=status.exit_code,
        reason=status.reason,
        message=status.message,
        image=status.image.image,
        image_id=status.image_ref,
        hash=annotations.get(HASH, ""),
        crashes=number(annotations, CRASHES),
        round=annotations.get(ROUND, ""),
        user=(user.uid, user.gid, tuple(user.supplemental_groups)) if has_user else None,
        resources=annotated_resources(annotations),
        sealed_mounts=frozenset(m.container_path for m in status.mounts if m.recursive_read_only),
    )


def _ours(listed: Iterable[_Listed]) -> list[_Listed]:
    """Pods of the kubelet; whatever else lives in the runtime is not its business."""
    return [item for item in listed if POD_UID in item.labels]


def _pod(pods: dict[str, RuntimePod], labels: Mapping[str, str]) -> RuntimePod:
    return pods.setdefault(
        labels[POD_UID], RuntimePod(labels.get(POD_NAMESPACE, ""), labels.get(POD_NAME, ""))
    )


async def _present(limit: asyncio.Semaphore, question: Awaitable[T]) -> T | None:
    async with limit:
        try:
            return await question
        except RuntimeFault as fault:
            if fault.code == NOT_FOUND:
                return None
            raise


class Exit(msgspec.Struct, frozen=True):
    code: int
    at: datetime
    out_of_memory: bool = False


class PodRecord:
    """The worker's knowledge of its pod. Changes are seen by the next `observed()`."""

    def __init__(self) -> None:
        self._sandboxes: dict[str, ObservedSandbox] = {}
        self._containers: dict[str, ObservedContainer] = {}
        self._exits: dict[str, Exit] = {}
        self._born: dict[str, int] = {}
        self._moment = 0
        self._out_of_memory: set[str] = set()
        self._spared: set[str] = set()
        self._failures: dict[str, StartFailure] = {}
        self.sandbox_failure: StartFailure | None = None
        self.initialized: frozenset[str] = frozenset()
        self.in_flight: set[Action] = set()
        self.restarting: set[str] = set()
        self.pre_stopped: set[str] = set()
        self.stopping: set[str] = set()
        """Containers whose stop has begun, be it with their preStop hook."""
        self.unwanted: frozenset[str] = frozenset()
        """Containers that were removed from the pod's spec, so that a start under way comes to nothing."""
        self.termination: Termination | None = None
        self.cleared = False
        """The node is short of disk: once the pod is over, nothing of it is kept."""
        self.volumes_ready = False
        self.volumes_error = ""
        self.started_at: datetime | None = None
        self._actuated_resources: dict[str, ResourceRequirements] = {}
        self.pending_resize: PendingResize | None = None
        self.resize_failure: StartFailure | None = None
        self.resized_generation = 0
        self.pod_limits: CgroupLimits | None = None
        self.limits_settled = False
        self.actuated: ResourceRequirements | None = None

    def observed(self) -> ObservedPod:
        """What is known now; the worker adds the pod's state and the results of its probes."""
        return ObservedPod(
            sandboxes=_newest_first(self._sandboxes.values()),
            containers=_newest_first(self._containers.values()),
            initialized_sandboxes=self.initialized,
            failures=dict(self._failures),
            sandbox_failure=self.sandbox_failure,
            volumes_ready=self.volumes_ready,
            volumes_error=self.volumes_error,
            in_flight=frozenset(self.in_flight),
            restarting=frozenset(self.restarting),
            pre_stopped=frozenset(self.pre_stopped),
            termination=self.termination,
            started_at=self.started_at,
            cleared=self.cleared,
            pending_resize=self.pending_resize,
            resize_failure=self.resize_failure,
            resized_generation=self.resized_generation,
            pod_limits=self.pod_limits,
            limits_settled=self.limits_settled,
            actuated=self.actuated,
        )

    def sandbox(self, sandbox_id: str) -> ObservedSandbox | None:
        return self._sandboxes.get(sandbox_id)

    def newest_sandbox(self) -> ObservedSandbox | None:
        return next(iter(_newest_first(self._sandboxes.values())), None)

    def container(self, container_id: str) -> ObservedContainer | None:
        return self._containers.get(container_id)

    def put_sandbox(self, sandbox: ObservedSandbox) -> None:
        """Record the runtime's answer, except where a stop or an exit is already known."""
        self._born.setdefault(sandbox.id, self._moment)
        known = self._sandboxes.get(sandbox.id)
        stopped = sandbox.stopped or (known is not None and known.stopped)
        ready = sandbox.ready and not stopped and sandbox.id not in self._exits
        self._sandboxes[sandbox.id] = replace(sandbox, stopped=stopped, ready=ready)

    def put_container(self, container: ObservedContainer) -> None:
        """Record the runtime's answer, except where more is already known."""
        known = self._containers.get(container.id)
        if known and _PROGRESS[known.state] > _PROGRESS[container.state]:
            # The answer is older than the state that is known; it may still have details.
            started_at = max(container.started_at, known.started_at)
            container = replace(
                container,
                state=known.state,
                started_at=container.started_at if container.running else started_at,
                finished_at=known.finished_at,
                exit_code=known.exit_code,
                reason=known.reason,
                message=known.message,
            )
        self._born.setdefault(container.id, self._moment)
        exit_ = self._exits.get(container.id)
        if exit_ and container.state is not ContainerState.EXITED:
            container = _exited(container, exit_)
        elif container.id in self._out_of_memory and container.exited and not container.reason:
            container = replace(container, reason=OOM_KILLED)
        if self._was_spared(container.id, container.exit_code) and container.reason == OOM_KILLED:
            container = replace(container, reason="")
        if known and known.message and not container.message:
            container = replace(container, message=known.message)
        if actuated := self._actuated_resources.get(container.id):
            container = replace(container, resources=actuated)
        self._containers[container.id] = container

    def exited(self, id_: str, code: int, nanoseconds: int, now: datetime) -> bool:
        """Record an EXITED event of a container or sandbox; `nanoseconds` since the epoch, 0 if unknown.
        False when the exit is already recorded."""
        if id_ in self._exits:
            return False
        at = from_nanoseconds(nanoseconds) if nanoseconds else now
        told = id_ in self._out_of_memory or id_ in self._spared
        self._exits[id_] = exit_ = Exit(code, at, told and not self._was_spared(id_, code))
        if sandbox := self._sandboxes.get(id_):
            self._sandboxes[id_] = replace(sandbox, ready=False)
        container = self._containers.get(id_)
        if container and not container.exited:
            self._containers[id_] = _exited(container, exit_)
        return True

    def out_of_memory(self, container_id: str) -> bool:
        """Record an OOM event whose victim was a process of this container. True if it is the reason of an
        exit that is known already."""
        self._out_of_memory.add(container_id)
        self._spared.discard(container_id)
        return self._is_reason_of_exit(container_id)

    def spared(self, container_id: str) -> bool:
        """Record an OOM event of the pod's cgroup whose victim was in another container. True if it is the
        reason of an exit that is known already."""
        if container_id not in self._out_of_memory:
            self._spared.add(container_id)
        return self._is_reason_of_exit(container_id)

    def _is_reason_of_exit(self, container_id: str) -> bool:
        """The runtime tells of an exit and of its reason in no order."""
        exit_ = self._exits.get(container_id)
        if exit_ is None or exit_.out_of_memory or exit_.code != KILLED:
            return False
        self._exits[container_id] = replace(exit_, out_of_memory=True)
        if container := self._containers.get(container_id):
            self._containers[container_id] = replace(container, reason=OOM_KILLED)
        return True

    def _was_spared(self, container_id: str, exit_code: int) -> bool:
        """False if the container itself exited with 137 (SIGKILL): it may be the next OOM victim."""
        return container_id in self._spared and exit_code != KILLED

    def message(self, container_id: str, text: str) -> None:
        if container := self._containers.get(container_id):
            self._containers[container_id] = replace(container, message=text)

    def sandbox_stopped(self, sandbox_id: str) -> None:
        if sandbox := self._sandboxes.get(sandbox_id):
            self._sandboxes[sandbox_id] = replace(sandbox, stopped=True, ready=False)

    def remove_sandbox(self, sandbox_id: str) -> None:
        """A sandbox takes its containers with it."""
        self._sandboxes.pop(sandbox_id, None)
        for container in list(self._containers.values()):
            if container.sandbox_id == sandbox_id:
                self.remove_container(container.id)
        self._exits.pop(sandbox_id, None)
        self._born.pop(sandbox_id, None)

    def remove_container(self, container_id: str) -> None:
        self._containers.pop(container_id, None)
        self._exits.pop(container_id, None)
        self._born.pop(container_id, None)
        self._actuated_resources.pop(container_id, None)
        self._spared.discard(container_id)
        self._out_of_memory.discard(container_id)
        self.restarting.discard(container_id)
        self.pre_stopped.discard(container_id)
        self.stopping.discard(container_id)

    def failed(self, name: str, error: StartError, now: datetime) -> None:
        self._failures[name] = _failure(error, self._failures.get(name), now)

    def sandbox_failed(self, error: StartError, now: datetime) -> None:
        self.sandbox_failure = _failure(error, self.sandbox_failure, now)

    def set_actuated(self, container_id: str, resources: ResourceRequirements) -> None:
        """The runtime has updated the container to these resources."""
        self._actuated_resources[container_id] = resources
        if container := self._containers.get(container_id):
            self._containers[container_id] = replace(container, resources=resources)

    def actuated_resources(self) -> Mapping[str, ResourceRequirements]:
        """By container id, for containers that were updated after their creation."""
        return self._actuated_resources

    def resize_failed(self, reason: str, message: str, now: datetime) -> None:
        self.resize_failure = _failure(StartError(reason, message), self.resize_failure, now)

    def succeeded(self, name: str) -> None:
        self._failures.pop(name, None)

    def mark(self) -> int:
        """A logical time, to be passed as `since`: everything recorded from now on is newer."""
        self._moment += 1
        return self._moment

    def replace_all(
        self, sandboxes: Sequence[ObservedSandbox], containers: Sequence[ObservedContainer], since: int
    ) -> None:
        """Replace what is known by what the runtime has, after events may have been missed. `since` is the
        `mark()` from before the runtime was asked: what is newer than it and not in the answer stays, as it
        may have been made while the runtime was answering."""
        found = {s.id for s in sandboxes} | {c.id for c in containers}
        old = {id_ for id_, born in self._born.items() if born < since}
        for gone in (self._containers.keys() & old) - found:
            self.remove_container(gone)
        for gone in (self._sandboxes.keys() & old) - found:
            self.remove_sandbox(gone)
        for sandbox in sandboxes:
            self.put_sandbox(sandbox)
        for container in containers:
            self.put_container(container)


def _failure(error: StartError, known: StartFailure | None, now: datetime) -> StartFailure:
    count = known.count if known else 0
    return StartFailure(error.reason, error.message, count + error.counts, now, error.instance)


def _exited(container: ObservedContainer, exit_: Exit) -> ObservedContainer:
    """`container` with its exit. If its start was never observed, its creation time stands for it."""
    started_at = container.started_at
    if container.state is ContainerState.CREATED:
        started_at = min(container.created_at, exit_.at)
    return replace(
        container,
        state=ContainerState.EXITED,
        started_at=started_at,
        finished_at=exit_.at,
        exit_code=exit_.code,
        reason=OOM_KILLED if exit_.out_of_memory else container.reason,
    )


def _newest_first(items: Iterable[_Made]) -> tuple[_Made, ...]:
    return tuple(sorted(items, key=lambda item: (item.created_at, item.attempt), reverse=True))
