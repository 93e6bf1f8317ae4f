"""One container's status: what the runtime has of it, what it waits for, and, where the runtime has forgotten
it, what the pod's status remembered.
"""

from __future__ import annotations

import msgspec

from podling.kubelet.container_types import ContainerType
from podling.kubelet.observed import ObservedContainer
from podling.kubelet.planning.container_plan import recorded
from podling.kubelet.planning.init_plan import initialized
from podling.kubelet.planning.resize import actuated
from podling.kubelet.planning.restart import LOST_EXIT_CODE, STATUS_UNKNOWN, restarts
from podling.kubelet.reporting.waiting import Moment, first_wait, waiting_for
from podling.model.container import (
    Container,
    EphemeralContainerCommon,
    ResourceRequirements,
    VolumeMount,
)
from podling.model.pod import Pod
from podling.model.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ContainerUser,
    LinuxContainerUser,
    VolumeMountStatus,
)
from podling.model.time import rfc3339

RUNTIME = "containerd"
LOST = "The container could not be located when the pod was terminated"
LOST_WHILE_RUNNING = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)
LOST_IN_RESTART = (
    "The container could not be located after its sandbox was lost.  The container used to be Running"
)
CANNOT_RUN, CANNOT_RUN_EXIT_CODE = "ContainerCannotRun", 128
"""As Kubernetes' runtimes say it of a container whose process cannot be started."""
POD_IS_OVER = "The pod has ended: no container is started in it any more"
DONE_BUT_GONE = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)
MESSAGES_OF_A_POD = 12 * 1024
"""Bytes of termination messages, shared evenly by a pod's containers."""


def container_status(at: Moment, kind: ContainerType, container: EphemeralContainerCommon) -> ContainerStatus:
    instances = at.observed.instances(container.name)
    old = recorded(at.pod.status, container.name)
    newest = instances[0] if instances else None
    made = _of_instances(at, container, instances, old) if newest else _of_none(at, kind, container, old)
    if not (at.ending or (kind is ContainerType.EPHEMERAL and made.state.terminated)):
        _hold_back(made, waiting_for(at, kind, container, newest))
    _judge(at, kind, made, newest)
    return made


def _of_instances(
    at: Moment,
    container: EphemeralContainerCommon,
    instances: tuple[ObservedContainer, ...],
    old: ContainerStatus | None,
) -> ContainerStatus:
    newest = instances[0]
    status = ContainerStatus(
        name=container.name,
        state=_state(at, newest, old),
        last_state=_last_state(at, instances, old),
        restart_count=max(newest.attempt, old.restart_count if old else 0),
        image=newest.image or container.image,
        image_id=newest.image_id,
        container_id=container_id(newest),
        allocated_resources=container.resources.requests,
        resources=_resources(container, newest),
        volume_mounts=_mounts(container, newest.sealed_mounts),
        stop_signal=container.lifecycle.stop_signal if container.lifecycle else None,
    )
    if newest.user:
        uid, gid, groups = newest.user
        linux = LinuxContainerUser(uid=uid, gid=gid, supplemental_groups=list(groups))
        status.user = ContainerUser(linux=linux)
    return status


def _resources(container: EphemeralContainerCommon, newest: ObservedContainer) -> ResourceRequirements:
    """What a running container has, which while it is being resized is not what it was given."""
    if isinstance(container, Container) and newest.running:
        return actuated(container, newest)
    return container.resources


def _state(at: Moment, container: ObservedContainer, old: ContainerStatus | None) -> ContainerState:
    if container.running and at.observed.starting(container.name):
        # Its postStart hook is not done.
        return ContainerState(waiting=first_wait(at.pod))
    if container.running:
        return ContainerState(running=ContainerStateRunning(started_at=rfc3339(container.started_at)))
    if container.exited:
        return ContainerState(terminated=_terminated(at.pod, container))
    if container.lost and old and old.state.running:
        # An ephemeral container that turns out to run all the same could not be shown so any more.
        return old.state if container.type is ContainerType.EPHEMERAL else _unknown(LOST)
    return ContainerState(waiting=first_wait(at.pod))


def _last_state(
    at: Moment, instances: tuple[ObservedContainer, ...], old: ContainerStatus | None
) -> ContainerState:
    """From the instance before, else from what was known of it when the runtime still had it."""
    if len(instances) > 1 and instances[1].exited:
        return ContainerState(terminated=_terminated(at.pod, instances[1]))
    if old is None:
        return ContainerState()
    replaced = old.container_id not in ("", container_id(instances[0]))
    return old.state if replaced and old.state.terminated else old.last_state


def _terminated(pod: Pod, container: ObservedContainer) -> ContainerStateTerminated:
    share = MESSAGES_OF_A_POD // max(len(pod.spec.containers) + len(pod.spec.init_containers), 1)
    return ContainerStateTerminated(
        exit_code=container.exit_code,
        reason=container.reason or ("Error" if container.exit_code else "Completed"),
        message=container.message.encode()[:share].decode(errors="ignore"),
        started_at=rfc3339(container.started_at),
        finished_at=rfc3339(container.finished_at),
        container_id=container_id(container),
    )


def _of_none(
    at: Moment, kind: ContainerType, container: EphemeralContainerCommon, old: ContainerStatus | None
) -> ContainerStatus:
    if old and old.state.terminated:
        return msgspec.structs.replace(old)
    if old and _is_over(at, kind, container, old):
        return _ended_unseen(old)
    status = ContainerStatus(
        name=container.name,
        image=container.image,
        state=ContainerState(waiting=first_wait(at.pod)),
        volume_mounts=_mounts(container),
    )
    if old:
        status.restart_count, status.last_state = old.restart_count, old.last_state
        if old.state.running:
            status.last_state = _unknown(LOST_WHILE_RUNNING)
            status.restart_count += not at.pod.metadata.deletion_timestamp
    if kind is ContainerType.INIT and initialized(at.pod, at.observed):
        done = ContainerStateTerminated(exit_code=0, reason="Completed", message=DONE_BUT_GONE)
        status.state = ContainerState(terminated=done)
    return status


def _is_over(
    at: Moment, kind: ContainerType, container: EphemeralContainerCommon, old: ContainerStatus
) -> bool:
    """Whether it was begun, and what the runtime has lost of it is not to run again."""
    if not isinstance(container, Container):
        return bool(old.state.running or old.last_state.terminated)
    lost = at.observed.newest(container.name) if old.state.running else None
    return lost is not None and not restarts(at.pod, container, kind, lost, at.observed)


def _ended_unseen(old: ContainerStatus) -> ContainerStatus:
    """It went with its sandbox; an ephemeral container is never begun again (R-EPH-3)."""
    if not old.state.running:
        return msgspec.structs.replace(old, state=old.last_state, last_state=ContainerState())
    ended = _unknown(LOST_IN_RESTART)
    if ended.terminated:
        ended.terminated.started_at = old.state.running.started_at
        ended.terminated.container_id = old.container_id
    return msgspec.structs.replace(old, state=ended)


def _hold_back(status: ContainerStatus, waiting: ContainerStateWaiting | None) -> None:
    """A container that is to be started but is not yet waits; what it ended with moves to its last state."""
    if waiting is None or status.state.running:
        return
    if status.state.terminated:
        status.last_state = status.state
    status.state = ContainerState(waiting=waiting)


def _judge(
    at: Moment, kind: ContainerType, status: ContainerStatus, newest: ObservedContainer | None
) -> None:
    """`started` and `ready`. Ephemeral containers are never either."""
    if kind is ContainerType.EPHEMERAL:
        return
    status.started = bool(newest and status.state.running and at.observed.started(newest))
    if kind is ContainerType.INIT:
        ended = status.state.terminated
        status.ready = ended is not None and ended.exit_code == 0
    else:
        status.ready = bool(newest and status.started and at.observed.probe(newest).ready)


def lose(status: ContainerStatus) -> None:
    """The pod is over and nobody knows how this container ended: that is no success."""
    status.state = _unknown(LOST)
    status.ready, status.started = False, False


def never_begin(status: ContainerStatus) -> None:
    """The pod is over, and this ephemeral container was not begun before: it says so to those who wait for it
    (R-EPH-15)."""
    why = ContainerStateTerminated(exit_code=CANNOT_RUN_EXIT_CODE, reason=CANNOT_RUN, message=POD_IS_OVER)
    status.state = ContainerState(terminated=why)


def container_id(container: ObservedContainer) -> str:
    return f"{RUNTIME}://{container.id}"


def _unknown(message: str) -> ContainerState:
    ended = ContainerStateTerminated(exit_code=LOST_EXIT_CODE, reason=STATUS_UNKNOWN, message=message)
    return ContainerState(terminated=ended)


def _mounts(
    container: EphemeralContainerCommon, sealed: frozenset[str] = frozenset()
) -> list[VolumeMountStatus]:
    return [
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only=_how_far(mount, sealed),
        )
        for mount in container.volume_mounts
    ]


def _how_far(mount: VolumeMount, sealed: frozenset[str]) -> str | None:
    """Of a mount that is read-only, whether those below it are."""
    if not mount.read_only:
        return None
    return "Enabled" if mount.mount_path in sealed else "Disabled"
