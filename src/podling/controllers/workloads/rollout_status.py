"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure. Pure.

Progressing is True while the rollout gets on, with the time when it last did (`lastUpdateTime`), and False
when it did not for `progressDeadlineSeconds`. Once complete it stays so, whatever becomes of the pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from podling.controllers.workloads.rollout import UNLIMITED, desired, max_unavailable, size_of
from podling.model.time import parse_time, rfc3339
from podling.model.types.apps import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
COMPLETE, UPDATED, TIMED_OUT = "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
SKEW = 1.0
"""Seconds that are waited beyond a deadline, since times are whole seconds."""

Conditions = list[DeploymentCondition]


def find(conditions: Conditions, type: str) -> DeploymentCondition | None:
    return next((one for one in conditions if one.type == type), None)


def condition(now: datetime, type: str, status: str, reason: str, message: str) -> DeploymentCondition:
    at = rfc3339(now)
    return DeploymentCondition(
        type=type,
        status=status,
        last_update_time=at,
        last_transition_time=at,
        reason=reason,
        message=message,
    )


def put(conditions: Conditions, new: DeploymentCondition) -> Conditions:
    """One of the same status and reason stays as it is; otherwise the new one is the last."""
    before = find(conditions, new.type)
    if before is not None and (before.status, before.reason) == (new.status, new.reason):
        return conditions
    if before is not None and before.status == new.status:
        new = replace(new, last_transition_time=before.last_transition_time)
    return [*without(conditions, new.type), new]


def without(conditions: Conditions, type: str) -> Conditions:
    return [one for one in conditions if one.type != type]


def deadline(deployment: Deployment) -> timedelta | None:
    seconds = deployment.spec.progress_deadline_seconds
    return timedelta(seconds=seconds) if seconds is not None and seconds != UNLIMITED else None


def counted(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """The status with its condition Available."""
    every = [*old, new] if new is not None else list(old)
    available = sum(one.status.available_replicas for one in every)
    terminating = [one.status.terminating_replicas for one in every]
    known = [number for number in terminating if number is not None]
    if available >= desired(deployment) - max_unavailable(deployment):
        said = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        said = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(one.status.replicas for one in every),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(one.status.ready_replicas for one in every),
        available_replicas=available,
        unavailable_replicas=max(sum(map(size_of, every)) - available, 0),
        terminating_replicas=sum(known) if len(known) == len(terminating) else None,
        collision_count=deployment.status.collision_count,
        conditions=put(deployment.status.conditions, condition(now, AVAILABLE, *said)),
    )


def rolled(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """As `counted`, with what the rollout has come to and what keeps ReplicaSets from having their pods."""
    status = counted(deployment, new, old, now)
    conditions = _progress(deployment, status, new, now)
    # The new set's failure counts before those of the old.
    every = [new, *old] if new is not None else old
    failures = [one for each in every for one in each.status.conditions if one.type == FAILURE]
    if failures:
        first = failures[0]
        failure = DeploymentCondition(
            type=first.type,
            status=first.status,
            last_update_time=first.last_transition_time,
            last_transition_time=first.last_transition_time,
            reason=first.reason,
            message=first.message,
        )
        return replace(status, conditions=put(conditions, failure))
    return replace(status, conditions=without(conditions, FAILURE))


def _progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> Conditions:
    conditions, within = status.conditions, deadline(deployment)
    if within is None:
        return without(conditions, PROGRESSING)
    before = find(deployment.status.conditions, PROGRESSING)
    if before is not None and before.reason == COMPLETE and status.replicas == status.updated_replicas:
        return conditions
    named = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        done = condition(now, PROGRESSING, "True", COMPLETE, f"{named} has successfully progressed.")
        return put(conditions, done)
    if _gets_on(deployment.status, status):
        going = condition(now, PROGRESSING, "True", UPDATED, f"{named} is progressing.")
        if before is not None and before.status == "True":
            going = replace(going, last_transition_time=before.last_transition_time)
        return [*without(conditions, PROGRESSING), going]
    if before is not None and _is_late(before, within, now):
        late = condition(now, PROGRESSING, "False", TIMED_OUT, f"{named} has timed out progressing.")
        return put(conditions, late)
    return conditions


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    has = {status.updated_replicas, status.replicas, status.available_replicas}
    return has == {desired(deployment)} and status.observed_generation >= deployment.metadata.generation


def _gets_on(before: DeploymentStatus, now: DeploymentStatus) -> bool:
    return (
        now.updated_replicas > before.updated_replicas
        or now.replicas - now.updated_replicas < before.replicas - before.updated_replicas
        or now.ready_replicas > before.ready_replicas
        or now.available_replicas > before.available_replicas
    )


def _is_late(progressing: DeploymentCondition, within: timedelta, now: datetime) -> bool:
    if progressing.reason == COMPLETE or not progressing.last_update_time:
        return False
    return progressing.reason == TIMED_OUT or parse_time(progressing.last_update_time) + within < now


def late_in(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """Seconds until a rollout that does not get on is late; None when it is over or has no deadline."""
    within, progressing = deadline(deployment), find(status.conditions, PROGRESSING)
    if within is None or progressing is None or not progressing.last_update_time:
        return None
    if is_complete(deployment, status) or progressing.reason == TIMED_OUT:
        return None
    return max((parse_time(progressing.last_update_time) + within - now).total_seconds(), 0) + SKEW


def paused(deployment: Deployment, now: datetime) -> Conditions:
    """A Deployment that is paused does not get late, and one that is resumed has its time again."""
    before = find(deployment.status.conditions, PROGRESSING)
    conditions, reason = deployment.status.conditions, before.reason if before else ""
    if deadline(deployment) is None or reason == TIMED_OUT:
        return conditions
    if deployment.spec.paused and reason != PAUSED:
        return put(conditions, condition(now, PROGRESSING, "Unknown", PAUSED, "Deployment is paused"))
    if not deployment.spec.paused and reason == PAUSED:
        return put(conditions, condition(now, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed"))
    return conditions
