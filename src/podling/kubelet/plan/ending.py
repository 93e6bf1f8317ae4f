"""Why and how a pod ends: deleted, phase already terminal, containers done, deadline exceeded, or told by the
node.

Planner and status both ask `ending`, so that they always agree.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from podling.kubelet.plan.restart import restarts
from podling.kubelet.pod.containers import NEVER, ContainerType, init_containers
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod
from podling.model.rules.status import TERMINAL
from podling.model.time import parse_time
from podling.model.types.container import Container
from podling.model.types.pod import Pod

SUCCEEDED = "Succeeded"
FAILED = "Failed"
MINIMUM_GRACE = 2
DEFAULT_GRACE = 30
DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


class Ending(msgspec.Struct, frozen=True):
    """How a pod ends."""

    deleted: bool = False
    """Nothing of the pod may be left on the node."""
    phase: str = ""
    """The final phase; "" if its containers decide it."""
    reason: str = ""
    message: str = ""
    grace_seconds: int = DEFAULT_GRACE
    """Of the whole pod."""
    due: datetime | None = None
    """When the grace period is over, if known."""


def ending(pod: Pod, observed: ObservedPod, now: datetime) -> Ending | None:
    """The end that is under way, or None while the pod should run."""
    told = _told(pod, observed)
    if pod.metadata.deletion_timestamp:
        return _deletion(pod, told)
    if told:
        return told
    if pod.status.phase in TERMINAL:
        return Ending(phase=pod.status.phase, grace_seconds=_grace(pod))
    phase = outcome(pod, observed)
    limit = deadline(pod, observed)
    if limit and now >= limit and not (phase and _ended_before(pod, observed, limit)):
        return _overdue(pod, limit)
    if phase or observed.state is not PodState.SYNCING:
        # A pod that has begun to end does end, even if the cause does not apply any more.
        return Ending(phase=phase, grace_seconds=_grace(pod))
    return None


def outcome(pod: Pod, observed: ObservedPod) -> str:
    """Succeeded or Failed when the containers alone have brought the pod to its end, else ""."""
    if _initialization_failed(pod, observed):
        return FAILED
    newest = [(c, observed.newest(c.name)) for c in pod.spec.containers]
    over = [n for c, n in newest if n and _over(pod, c, n, observed)]
    if len(over) == len(newest):
        return SUCCEEDED if all(n.succeeded for n in over) else FAILED
    return FAILED if _stranded(pod, observed, [n for _, n in newest if n]) else ""


def _over(pod: Pod, container: Container, instance: ObservedContainer, observed: ObservedPod) -> bool:
    return (instance.exited or instance.lost) and not restarts(
        pod, container, ContainerType.REGULAR, instance, observed
    )


def _initialization_failed(pod: Pod, observed: ObservedPod) -> bool:
    for kind, container in init_containers(pod):
        newest = observed.newest(container.name) if kind is ContainerType.INIT else None
        if newest and newest.failed and not restarts(pod, container, kind, newest, observed):
            return True
    return False


def _stranded(pod: Pod, observed: ObservedPod, instances: list[ObservedContainer]) -> bool:
    """A pod with restartPolicy Never has lost its sandbox after some app containers were created: the others
    cannot be started any more."""
    lost = observed.sandbox is not None and not observed.sandbox.usable
    dead = all(not c.running for c in instances)
    return lost and dead and bool(instances) and pod.spec.restart_policy == NEVER


def deadline(pod: Pod, observed: ObservedPod) -> datetime | None:
    """When activeDeadlineSeconds, counted from the pod's start on the node (R-INIT-7), are over; None without
    them."""
    started = parse_time(pod.status.start_time) if pod.status.start_time else observed.started_at
    seconds = pod.spec.active_deadline_seconds
    return started + timedelta(seconds=seconds) if started and seconds is not None else None


def _ended_before(pod: Pod, observed: ObservedPod, limit: datetime) -> bool:
    names = {c.name for c in (*pod.spec.init_containers, *pod.spec.containers)}
    return all(c.finished_at < limit for c in observed.containers if c.name in names)


def _overdue(pod: Pod, limit: datetime) -> Ending:
    grace = _grace(pod)
    due = limit + timedelta(seconds=grace)
    return Ending(
        phase=FAILED, reason=DEADLINE_EXCEEDED, message=DEADLINE_MESSAGE, grace_seconds=grace, due=due
    )


def _deletion(pod: Pod, told: Ending | None) -> Ending:
    given = pod.metadata.deletion_grace_period_seconds
    grace = _grace(pod) if given is None else given
    return Ending(
        deleted=True,
        phase=told.phase if told else "",
        reason=told.reason if told else "",
        message=told.message if told else "",
        grace_seconds=min(grace, told.grace_seconds) if told else grace,
        due=parse_time(pod.metadata.deletion_timestamp),
    )


def _told(pod: Pod, observed: ObservedPod) -> Ending | None:
    told = observed.termination
    if told is None:
        return None
    grace = _grace(pod) if told.grace_seconds is None else told.grace_seconds
    return Ending(
        deleted=not told.phase,
        phase=told.phase,
        reason=told.reason,
        message=told.message,
        grace_seconds=grace,
    )


def _grace(pod: Pod) -> int:
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace
