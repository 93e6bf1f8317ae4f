"""Why and how a pod ends: deleted, phase already terminal, containers done, deadline exceeded, or told by the
node.

Planner and status both ask `ending`, so that they always agree.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from podling.kubelet.plan.restart import restarts
from podling.kubelet.pod.containers import NEVER, ContainerType, init_containers
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import ObservedPod
from podling.model.rules.status import TERMINAL
from podling.model.time import parse_time
from podling.model.types.pod import Pod

SUCCEEDED = "Succeeded"
FAILED = "Failed"
MINIMUM_GRACE = 2
"""Seconds that a container has at least between SIGTERM and SIGKILL."""
LEAST_OF_DELETED = 1
"""Seconds that a deleted pod has at least, as with Kubernetes' kubelet: its hooks are run even by force."""
DEFAULT_GRACE = 30
"""Seconds of a pod that says nothing."""
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


def grace_period(pod: Pod) -> int:
    """Seconds that the pod asks for its containers to end."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace


def ending(pod: Pod, observed: ObservedPod, now: datetime) -> Ending | None:
    """The end that is under way, or None while the pod should run."""
    grace, told = grace_period(pod), None
    if why := observed.termination:
        told = Ending(
            deleted=not why.phase,
            phase=why.phase,
            reason=why.reason,
            message=why.message,
            grace_seconds=grace if why.grace_seconds is None else why.grace_seconds,
        )
    if pod.metadata.deletion_timestamp:
        # Its containers end for the node's reason, if it has one, and within the shorter grace period.
        asked = pod.metadata.deletion_grace_period_seconds
        seconds = max(grace if asked is None else asked, LEAST_OF_DELETED)
        of_node = told or Ending(grace_seconds=seconds)
        due = parse_time(pod.metadata.deletion_timestamp)
        return replace(of_node, deleted=True, grace_seconds=min(seconds, of_node.grace_seconds), due=due)
    if told:
        return told
    if pod.status.phase in TERMINAL:
        return Ending(phase=pod.status.phase, grace_seconds=grace)
    phase, limit = outcome(pod, observed), deadline(pod, observed)
    if limit and now >= limit:
        names = {c.name for c in (*pod.spec.init_containers, *pod.spec.containers)}
        in_time = all(c.finished_at < limit for c in observed.containers if c.name in names)
        if not (phase and in_time):
            due = limit + timedelta(seconds=grace)
            return Ending(False, FAILED, DEADLINE_EXCEEDED, DEADLINE_MESSAGE, grace, due)
    if phase or observed.state is not PodState.SYNCING:
        # A pod that has begun to end does end, even if the cause does not apply any more.
        return Ending(phase=phase, grace_seconds=grace)
    return None


def outcome(pod: Pod, observed: ObservedPod) -> str:
    """Succeeded or Failed when the containers alone have brought the pod to its end, else ""."""
    for kind, init in init_containers(pod):
        failed = observed.newest.get(init.name) if kind is ContainerType.INIT else None
        if failed and failed.failed and not restarts(pod, init, kind, failed, observed):
            return FAILED
    newest = [(c, instance) for c in pod.spec.containers if (instance := observed.newest.get(c.name))]
    over = [
        instance
        for container, instance in newest
        if (instance.exited or instance.lost)
        and not restarts(pod, container, ContainerType.REGULAR, instance, observed)
    ]
    if len(over) == len(pod.spec.containers):
        return SUCCEEDED if all(instance.succeeded for instance in over) else FAILED
    # A pod with restartPolicy Never that has lost its sandbox after some app containers were created: the
    # others cannot be started any more.
    lost = observed.sandbox is not None and not observed.sandbox.usable
    stranded = lost and newest and not any(instance.running for _, instance in newest)
    return FAILED if stranded and pod.spec.restart_policy == NEVER else ""


def deadline(pod: Pod, observed: ObservedPod) -> datetime | None:
    """When activeDeadlineSeconds, counted from the pod's start on the node (R-INIT-7), are over; None without
    them."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None:
        return None
    started = parse_time(pod.status.start_time) if pod.status.start_time else observed.started_at
    return started + timedelta(seconds=seconds) if started else None
