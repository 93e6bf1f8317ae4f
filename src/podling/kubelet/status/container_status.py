"""The statuses of a pod's containers: from the runtime's instances, from what each waits for, and else from
its old status. Pure.

An exit or a failed pull is shown as itself for a moment (`restart.SHOWN`), then as the back-off it led to.
`status_changes_at` is that time: the worker wakes for it, so that the status says CrashLoopBackOff although
nothing else happens.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podling.kubelet.plan.containers import initialized, target_of
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
from podling.kubelet.pod.containers import ContainerType, all_containers, all_statuses, init_containers
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod, StartFailure
from podling.model.time import go_duration, rfc3339
from podling.model.types.container import (
    Container,
    EphemeralContainer,
    EphemeralContainerCommon,
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

RUNTIME = "containerd"
"""The scheme of container ids in the API."""
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


class StatusInputs(msgspec.Struct, frozen=True):
    """What the status of every container of one pod depends on."""

    pod: Pod
    observed: ObservedPod
    now: datetime
    ending: bool
    """The pod ends: no container is started any more."""
    over: bool
    """It ends, and no container runs or is being started."""


class ContainerStatuses(NamedTuple):
    """The statuses of one pod's containers, in the spec's order."""

    init: list[ContainerStatus]
    apps: list[ContainerStatus]
    debug: list[ContainerStatus]
    """Of the ephemeral containers of the spec, then of those that were removed from it and of which something
    is still here: as long as they are shown, their names cannot be used again (R-EPH-11)."""


def container_statuses(at: StatusInputs) -> ContainerStatuses:
    """The statuses of all containers that are shown."""
    pod, observed = at.pod, at.observed
    known = {container.name for _, container in all_containers(pod)}
    left = {name: EphemeralContainer(name=name) for name in observed.starts - known}
    for instance in observed.containers:
        if instance.type is ContainerType.EPHEMERAL and instance.name not in known:
            left[instance.name] = EphemeralContainer(name=instance.name, image=instance.image)
    old = {status.name: status for status in all_statuses(pod.status)}
    init = [container_status(at, kind, c, old.get(c.name)) for kind, c in init_containers(pod)]
    apps = [container_status(at, ContainerType.REGULAR, c, old.get(c.name)) for c in pod.spec.containers]
    ephemeral = (*pod.spec.ephemeral_containers, *left.values())
    debug = [container_status(at, ContainerType.EPHEMERAL, c, old.get(c.name)) for c in ephemeral]
    if at.over:
        lose_unaccounted(init, apps)
        for status in debug:
            if not (status.state.running or status.state.terminated):
                # It was not begun before the pod's end, and says so to those who wait for it (R-EPH-15).
                why = ContainerStateTerminated(CANNOT_RUN_EXIT_CODE, reason=CANNOT_RUN, message=POD_IS_OVER)
                status.state = ContainerState(terminated=why)
    return ContainerStatuses(init, apps, debug)


def lose_unaccounted(init: list[ContainerStatus], apps: list[ContainerStatus]) -> None:
    """When the pod is over, a container that was started and has no known exit counts as failed."""
    # Of the init containers all but the last ones that never ran; at least the first.
    ran = [index for index, s in enumerate(init) if not s.state.waiting or s.last_state.terminated]
    lost = init[: max(ran, default=0) + 1]
    initialized = not init or any(s.last_state.terminated or not s.state.waiting for s in apps)
    if not initialized:
        ended = init[-1].state.terminated or init[-1].last_state.terminated
        initialized = bool(init[-1].started) or (ended is not None and ended.exit_code == 0)
    for status in (*lost, *apps) if initialized else lost:
        if not status.state.terminated:
            status.state = _unknown(LOST)
            status.ready, status.started = False, False


def container_status(
    at: StatusInputs, kind: ContainerType, container: EphemeralContainerCommon, old: ContainerStatus | None
) -> ContainerStatus:
    """The status of one container of the pod; `old` is the one it has so far."""
    instances = at.observed.instances(container.name)
    newest = instances[0] if instances else None
    made = _of_instances(at, container, instances, old) if newest else _of_none(at, kind, container, old)
    if not (at.ending or (kind is ContainerType.EPHEMERAL and made.state.terminated)):
        waiting = waiting_for(at, kind, container, newest)
        if waiting and not made.state.running:
            # It will be started: its terminated state moves to lastState.
            made.last_state = made.state if made.state.terminated else made.last_state
            made.state = ContainerState(waiting=waiting)
    if kind is ContainerType.EPHEMERAL:
        return made
    made.started = bool(newest and made.state.running and at.observed.started(newest))
    if kind is ContainerType.INIT:
        ended = made.state.terminated
        made.ready = ended is not None and ended.exit_code == 0
    else:
        made.ready = bool(newest and made.started and at.observed.probe(newest).ready)
    return made


def _of_instances(
    at: StatusInputs,
    container: EphemeralContainerCommon,
    instances: tuple[ObservedContainer, ...],
    old: ContainerStatus | None,
) -> ContainerStatus:
    newest = instances[0]
    if newest.running and container.name not in at.observed.starts:
        state = ContainerState(running=ContainerStateRunning(started_at=rfc3339(newest.started_at)))
    elif newest.exited:
        state = ContainerState(terminated=_terminated(at.pod, newest))
    elif newest.lost and old and old.state.running:
        # An ephemeral container that turns out to run all the same could not be shown so any more.
        state = old.state if newest.type is ContainerType.EPHEMERAL else _unknown(LOST)
    else:
        # Not started, or its postStart hook is not done.
        state = ContainerState(waiting=first_wait(at.pod))
    last_state = ContainerState()
    if len(instances) > 1 and instances[1].exited:
        last_state = ContainerState(terminated=_terminated(at.pod, instances[1]))
    elif old is not None:
        # What was known of the instance before when the runtime still had it.
        replaced = old.container_id not in ("", container_id(newest))
        last_state = old.state if replaced and old.state.terminated else old.last_state
    resources = container.resources
    if isinstance(container, Container) and newest.running:
        # While it is being resized, it has not what it was allocated.
        resources = actuated(container, newest)
    status = ContainerStatus(
        name=container.name,
        state=state,
        last_state=last_state,
        restart_count=max(newest.attempt, old.restart_count if old else 0),
        image=newest.image or container.image,
        image_id=newest.image_id,
        container_id=container_id(newest),
        allocated_resources=container.resources.requests,
        resources=resources,
        volume_mounts=_mounts(container, newest.sealed_mounts),
        stop_signal=container.lifecycle.stop_signal if container.lifecycle else None,
    )
    if newest.user:
        uid, gid, groups = newest.user
        linux = LinuxContainerUser(uid=uid, gid=gid, supplemental_groups=list(groups))
        status.user = ContainerUser(linux=linux)
    return status


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
        return replace(old)
    if old and (running := old.state.running):
        lost = at.observed.newest.get(container.name)
        if not isinstance(container, Container) or (
            lost is not None and not restarts(at.pod, container, kind, lost, at.observed)
        ):
            # It went with its sandbox and is not begun again, an ephemeral container never (R-EPH-3).
            ended = ContainerStateTerminated(
                LOST_EXIT_CODE,
                reason=STATUS_UNKNOWN,
                message=LOST_IN_RESTART,
                started_at=running.started_at,
                container_id=old.container_id,
            )
            return replace(old, state=ContainerState(terminated=ended))
    elif old and old.last_state.terminated and not isinstance(container, Container):
        return replace(old, state=old.last_state, last_state=ContainerState())
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
    observed = at.observed
    is_ephemeral = isinstance(container, EphemeralContainer)
    if failure := observed.failures.get(container.name):
        # The end of an instance that could not be started says more after a while: of an ephemeral container
        # at once, for no other follows it.
        made = newest if newest and newest.exited and newest.id == failure.instance else None
        if made is None or not (is_ephemeral or at.now >= made.finished_at + SHOWN):
            return failure_state(container, failure, at.now)
    usable = observed.sandbox is not None and observed.sandbox.usable
    if isinstance(container, EphemeralContainer):
        target = container.target_container_name
        if newest or not target or not usable or target_of(container, observed):
            return None
        message = f'unable to find target container "{target}"'
        return ContainerStateWaiting(reason="CreateContainerConfigError", message=message)
    if newest is None or not isinstance(container, Container):
        return None
    if at.now >= newest.finished_at + SHOWN and crash_loops(at.pod, kind, container, newest, observed):
        return crash_loop_state(at.pod, container, newest)
    if not usable or not newest.exited or (observed.in_sandbox(newest) and not observed.outdated(newest)):
        return None
    # It ended in an earlier sandbox, or round, and may still have to run in this one (R-INIT-4).
    if kind is ContainerType.INIT:
        again = not initialized(at.pod, observed)
    else:
        again = restarts(at.pod, container, kind, newest, observed)
    return first_wait(at.pod) if again else None


def failure_state(
    container: EphemeralContainerCommon, failure: StartFailure, now: datetime
) -> ContainerStateWaiting:
    """The failure itself, and after a moment the back-off of a pull that failed."""
    if failure.reason not in PULL_FAILURES or now < failure.at + SHOWN:
        return ContainerStateWaiting(reason=failure.reason, message=failure.message)
    message = f'Back-off pulling image "{container.image}": {failure.reason}: {failure.message}'
    return ContainerStateWaiting(reason="ImagePullBackOff", message=message)


def crash_loop_state(pod: Pod, container: Container, ended: ObservedContainer) -> ContainerStateWaiting:
    """The waiting state of a container that `ended` and is held back."""
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
        ended = observed.newest.get(container.name)
        if ended and isinstance(container, Container) and crash_loops(pod, kind, container, ended, observed):
            times.append(ended.finished_at + SHOWN)
    return min((t for t in times if t > now), default=None)


def container_id(container: ObservedContainer) -> str:
    return f"{RUNTIME}://{container.id}"


def _unknown(message: str) -> ContainerState:
    ended = ContainerStateTerminated(exit_code=LOST_EXIT_CODE, reason=STATUS_UNKNOWN, message=message)
    return ContainerState(terminated=ended)


def _mounts(
    container: EphemeralContainerCommon, sealed: frozenset[str] = frozenset()
) -> list[VolumeMountStatus]:
    """`sealed`: the paths of the mounts below which all mounts are read-only, too."""
    how_far = {True: "Enabled", False: "Disabled"}
    return [
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only=how_far[mount.mount_path in sealed] if mount.read_only else None,
        )
        for mount in container.volume_mounts
    ]
