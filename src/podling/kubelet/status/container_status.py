"""One container's status: from the runtime's instances, from what it waits for, and else from the old status.
Pure.

An exit or a failed pull is shown as itself for a moment (`restart.SHOWN`), then as the back-off it led to.
`status_changes_at` is that time: the worker wakes for it, so that the status says CrashLoopBackOff although
nothing else happens.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from podling.kubelet.plan.containers import initialized, recorded
from podling.kubelet.plan.ephemeral import target_of
from podling.kubelet.plan.resize import actuated
from podling.kubelet.plan.restart import (
    LOST_EXIT_CODE,
    SHOWN,
    STATUS_UNKNOWN,
    changed,
    from_before,
    restart_delay,
    restarts,
)
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod, StartFailure
from podling.model.time import go_duration, rfc3339
from podling.model.types.container import (
    Container,
    EphemeralContainer,
    EphemeralContainerCommon,
    ResourceRequirements,
    VolumeMount,
)
from podling.model.types.pod import Pod
from podling.model.types.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ContainerUser,
    LinuxContainerUser,
    VolumeMountStatus,
)

PULL_FAILURES = frozenset({"ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"})
"""Failures of the registry, followed by ImagePullBackOff; others are shown until the next attempt."""


class StatusInputs(msgspec.Struct, frozen=True):
    """What the status of every container of one pod depends on."""

    pod: Pod
    observed: ObservedPod
    now: datetime
    ending: bool
    """The pod ends: no container is started any more."""


def first_wait(pod: Pod) -> ContainerStateWaiting:
    """What a container waits for that has never been started."""
    return ContainerStateWaiting(
        reason="PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    )


def waiting_for(
    at: StatusInputs,
    kind: ContainerType,
    container: EphemeralContainerCommon,
    newest: ObservedContainer | None,
) -> ContainerStateWaiting | None:
    """The waiting state, if any. None leaves the state that follows from the newest instance, or from there
    being none."""
    failure = at.observed.failures.get(container.name)
    if failure and not _is_past(at, container, failure, newest):
        return failure_state(container, failure, at.now)
    if isinstance(container, EphemeralContainer):
        return None if newest else _without_target(at, container)
    if newest is None or not isinstance(container, Container):
        return None
    if at.now >= newest.finished_at + SHOWN and crash_loops(at.pod, kind, container, newest, at.observed):
        return crash_loop_state(at.pod, container, newest)
    return first_wait(at.pod) if _begins_anew(at, kind, container, newest) else None


def _is_past(
    at: StatusInputs,
    container: EphemeralContainerCommon,
    failure: StartFailure,
    newest: ObservedContainer | None,
) -> bool:
    """Whether its end says more by now than that it could not be started: an ephemeral one's at once, for no
    other follows it."""
    if newest is None or not newest.exited or newest.id != failure.instance:
        return False
    return isinstance(container, EphemeralContainer) or at.now >= newest.finished_at + SHOWN


def _without_target(at: StatusInputs, container: EphemeralContainer) -> ContainerStateWaiting | None:
    name = container.target_container_name
    sandbox = at.observed.sandbox
    if not name or sandbox is None or not sandbox.usable or target_of(container, at.observed):
        return None
    message = f'unable to find target container "{name}"'
    return ContainerStateWaiting(reason="CreateContainerConfigError", message=message)


def _begins_anew(
    at: StatusInputs, kind: ContainerType, container: Container, newest: ObservedContainer
) -> bool:
    """Whether it ended in an earlier sandbox, or round, and is still to run in this one (R-INIT-4)."""
    sandbox = at.observed.sandbox
    if sandbox is None or not sandbox.usable or not newest.exited:
        return False
    if newest.sandbox_id == sandbox.id and not at.observed.outdated(newest):
        return False
    if kind is ContainerType.INIT:
        return not initialized(at.pod, at.observed)
    return restarts(at.pod, container, kind, newest, at.observed)


def failure_state(
    container: EphemeralContainerCommon, failure: StartFailure, now: datetime
) -> ContainerStateWaiting:
    if failure.reason not in PULL_FAILURES or now < failure.at + SHOWN:
        return ContainerStateWaiting(reason=failure.reason, message=failure.message)
    message = f'Back-off pulling image "{container.image}": {failure.reason}: {failure.message}'
    return ContainerStateWaiting(reason="ImagePullBackOff", message=message)


def crash_loop_state(pod: Pod, container: Container, ended: ObservedContainer) -> ContainerStateWaiting:
    meta = pod.metadata
    message = (
        f"back-off {go_duration(restart_delay(ended))} restarting failed container={container.name} "
        f"pod={meta.name}_{meta.namespace}({meta.uid})"
    )
    return ContainerStateWaiting(reason="CrashLoopBackOff", message=message)


def crash_loops(
    pod: Pod, kind: ContainerType, container: Container, ended: ObservedContainer, observed: ObservedPod
) -> bool:
    """Whether a container that has ended is held back before its next start."""
    if kind is ContainerType.EPHEMERAL or not ended.exited or changed(container, ended):
        return False
    if from_before(ended, observed):
        return False
    return restart_delay(ended) > timedelta(0) and restarts(pod, container, kind, ended, observed)


def status_changes_at(pod: Pod, observed: ObservedPod, now: datetime) -> datetime | None:
    """The next time at which a waiting reason changes though nothing else happens."""
    times = []
    for kind, container in all_containers(pod):
        failure = observed.failures.get(container.name)
        if failure and failure.reason in PULL_FAILURES:
            times.append(failure.at + SHOWN)
        ended = observed.newest(container.name)
        if ended and isinstance(container, Container) and crash_loops(pod, kind, container, ended, observed):
            times.append(ended.finished_at + SHOWN)
    return min((t for t in times if t > now), default=None)


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


def container_status(
    at: StatusInputs, kind: ContainerType, container: EphemeralContainerCommon
) -> ContainerStatus:
    instances = at.observed.instances(container.name)
    old = recorded(at.pod.status, container.name)
    newest = instances[0] if instances else None
    made = _of_instances(at, container, instances, old) if newest else _of_none(at, kind, container, old)
    if not (at.ending or (kind is ContainerType.EPHEMERAL and made.state.terminated)):
        _hold_back(made, waiting_for(at, kind, container, newest))
    _judge(at, kind, made, newest)
    return made


def _of_instances(
    at: StatusInputs,
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


def _state(at: StatusInputs, container: ObservedContainer, old: ContainerStatus | None) -> ContainerState:
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
    at: StatusInputs, instances: tuple[ObservedContainer, ...], old: ContainerStatus | None
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
    at: StatusInputs, kind: ContainerType, container: EphemeralContainerCommon, old: ContainerStatus | None
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
    at: StatusInputs, kind: ContainerType, container: EphemeralContainerCommon, old: ContainerStatus
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
    """Show a container that will be started as waiting; its terminated state moves to lastState."""
    if waiting is None or status.state.running:
        return
    if status.state.terminated:
        status.last_state = status.state
    status.state = ContainerState(waiting=waiting)


def _judge(
    at: StatusInputs, kind: ContainerType, status: ContainerStatus, newest: ObservedContainer | None
) -> None:
    """Set `started` and `ready`, which ephemeral containers never are."""
    if kind is ContainerType.EPHEMERAL:
        return
    status.started = bool(newest and status.state.running and at.observed.started(newest))
    if kind is ContainerType.INIT:
        ended = status.state.terminated
        status.ready = ended is not None and ended.exit_code == 0
    else:
        status.ready = bool(newest and status.started and at.observed.probe(newest).ready)


def lose(status: ContainerStatus) -> None:
    """The pod has ended and the container's exit code is unknown: it counts as a failure."""
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
