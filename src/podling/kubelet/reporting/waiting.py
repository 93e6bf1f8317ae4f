"""What a container that does not run is waiting for, in Kubernetes' words, and when that changes by time
alone.

An exit or a failed pull is shown as itself for a moment (`backoff.SHOWN`), then as the back-off it led to.
The planner wakes for these moments too, so that the status says CrashLoopBackOff although nothing else
happens.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from podling.kubelet.container_types import ContainerType, all_containers
from podling.kubelet.observed import ObservedContainer, ObservedPod, StartFailure
from podling.kubelet.planning.backoff import SHOWN, restart_delay
from podling.kubelet.planning.ephemeral_plan import target_of
from podling.kubelet.planning.init_plan import initialized
from podling.kubelet.planning.restart import changed, from_before, restarts
from podling.kubelet.reporting.durations import milliseconds_text
from podling.model.container import Container, EphemeralContainer, EphemeralContainerCommon
from podling.model.pod import Pod
from podling.model.pod_status import ContainerStateWaiting

PULL_FAILURES = frozenset({"ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"})
"""Failures of the registry, followed by ImagePullBackOff; others are shown until the next attempt."""


class Moment(msgspec.Struct, frozen=True):
    """What every container's status depends on. `ending`: the pod is to start nothing any more."""

    pod: Pod
    observed: ObservedPod
    now: datetime
    ending: bool


def first_wait(pod: Pod) -> ContainerStateWaiting:
    """What a container waits for that has never been started."""
    return ContainerStateWaiting(
        reason="PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    )


def waiting_for(
    at: Moment, kind: ContainerType, container: EphemeralContainerCommon, newest: ObservedContainer | None
) -> ContainerStateWaiting | None:
    """None when there is nothing to say beyond what the newest instance, or its absence, says itself."""
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
    at: Moment, container: EphemeralContainerCommon, failure: StartFailure, newest: ObservedContainer | None
) -> bool:
    """Whether its end says more by now than that it could not be started: an ephemeral one's at once, for no
    other follows it."""
    if newest is None or not newest.exited or newest.id != failure.instance:
        return False
    return isinstance(container, EphemeralContainer) or at.now >= newest.finished_at + SHOWN


def _without_target(at: Moment, container: EphemeralContainer) -> ContainerStateWaiting | None:
    name = container.target_container_name
    sandbox = at.observed.sandbox
    if not name or sandbox is None or not sandbox.usable or target_of(container, at.observed):
        return None
    message = f'unable to find target container "{name}"'
    return ContainerStateWaiting(reason="CreateContainerConfigError", message=message)


def _begins_anew(at: Moment, kind: ContainerType, container: Container, newest: ObservedContainer) -> bool:
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
        f"back-off {milliseconds_text(restart_delay(ended))} restarting failed container={container.name} "
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
    """The next time a waiting reason changes though nothing happens."""
    times = []
    for kind, container in all_containers(pod):
        failure = observed.failures.get(container.name)
        if failure and failure.reason in PULL_FAILURES:
            times.append(failure.at + SHOWN)
        ended = observed.newest(container.name)
        if ended and isinstance(container, Container) and crash_loops(pod, kind, container, ended, observed):
            times.append(ended.finished_at + SHOWN)
    return min((t for t in times if t > now), default=None)
