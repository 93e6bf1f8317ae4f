"""How far a Job has come, and which pods it needs next. Pure.

`look` counts its pods: those that have ended and still carry the finalizer count beside the status, which has
the others. `verdict` is the condition that decides the Job, once there is one; then nothing is made any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from podling.controllers.endpoints import is_ready
from podling.controllers.workloads import job_policies as policies
from podling.controllers.workloads.job_policies import Failures, has_failed, index_of, judge
from podling.controllers.workloads.pods import is_active, is_terminating, ready_since
from podling.controllers.workloads.scale_down import PHASES, restarts
from podling.model.rules.indexes import as_ranges, first_missing, has_index, indexes_below, total, union
from podling.model.rules.jobs import FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, is_indexed, is_tracked
from podling.model.time import parse_time, rfc3339
from podling.model.types.batch import Job, JobCondition
from podling.model.types.pod import Pod

MOST_AT_ONCE = 500
"""Pods created or deleted for one reconciliation."""


class State(NamedTuple):
    """`completed` and `failed_indexes` are None without indexes, and without a limit for each.

    `waiting` has the last failed pod of each index that is to get another: it keeps its finalizer until then,
    since the next one is told how often its index has failed."""

    active: Sequence[Pod]
    terminating: int
    ready: int
    succeeded: int
    failed: int
    completed: list[range] | None
    failed_indexes: list[range] | None
    waiting: Mapping[int, Pod]
    failures: Failures
    verdict: JobCondition | None


class Remove(NamedTuple):
    pods: Sequence[Pod]


class Make(NamedTuple):
    """Pods of these indexes; without indexes as many as there are."""

    indexes: Sequence[int | None]


class Wait(NamedTuple):
    seconds: float


Step = Remove | Make | Wait


def look(job: Job, pods: Sequence[Pod], before: Failures, now: datetime) -> State:
    """`pods`: all of the Job that have not ended or are tracked. `before`: the failures when it was last
    looked at."""
    status, uncounted = job.status, job.status.uncounted_terminated_pods
    known = {*uncounted.succeeded, *uncounted.failed} if uncounted else set[str]()
    active = [pod for pod in pods if is_active(pod)]
    tracked = [pod for pod in pods if is_tracked(pod)]
    if is_indexed(job):
        tracked = [pod for pod in tracked if index_of(job, pod) is not None]
    succeeded = [pod for pod in tracked if pod.status.phase == "Succeeded"]
    failed = [pod for pod in tracked if has_failed(job, pod)]
    new_succeeded = [pod for pod in succeeded if pod.metadata.uid not in known]
    new_failed = [pod for pod in failed if pod.metadata.uid not in known]
    succeeded_count = status.succeeded + len(new_succeeded) + (len(uncounted.succeeded) if uncounted else 0)
    failed_count = status.failed + sum(judge(job, pod).counts for pod in new_failed)
    failed_count += len(uncounted.failed) if uncounted else 0
    completed = failed_indexes = None
    waiting: Mapping[int, Pod] = {}
    if is_indexed(job):
        completed = union(completed_before(job), as_ranges(indexes(job, succeeded)))
        succeeded_count = total(completed)
        if job.spec.backoff_limit_per_index is not None:
            standing = indexes_below(status.failed_indexes or "", job.spec.completions or 0)
            over = [pod for pod in tracked if policies.has_failed_index(job, pod)]
            failed_indexes = union(standing, as_ranges(indexes(job, over)))
            settled = union(completed, failed_indexes)
            waiting = to_be_replaced(job, failed, union(settled, as_ranges(indexes(job, active))))
    state = State(
        active=active,
        terminating=sum(map(is_terminating, pods)),
        ready=sum(map(is_ready, active)),
        succeeded=succeeded_count,
        failed=failed_count,
        completed=completed,
        failed_indexes=failed_indexes,
        waiting=waiting,
        failures=policies.after(before, new_succeeded, new_failed),
        verdict=None,
    )
    return state._replace(verdict=verdict(job, pods, state, now))


def completed_before(job: Job) -> list[range]:
    return indexes_below(job.status.completed_indexes, job.spec.completions or 0)


def indexes(job: Job, pods: Iterable[Pod]) -> set[int]:
    found = (index_of(job, pod) for pod in pods)
    return {index for index in found if index is not None}


def to_be_replaced(job: Job, failed: Iterable[Pod], settled: list[range]) -> Mapping[int, Pod]:
    """The last failed pod of each index that is not settled."""
    found: dict[int, Pod] = {}
    for pod in failed:
        index = index_of(job, pod)
        if index is not None and not has_index(settled, index):
            found[index] = max(found.get(index, pod), pod, key=_age_in_index)
    return found


def _age_in_index(pod: Pod) -> tuple[int, datetime]:
    return policies.failures_of_index(pod), policies.finished_at(pod)


def condition(type: str, reason: str, message: str, now: datetime, status: str = "True") -> JobCondition:
    at = rfc3339(now)
    return JobCondition(
        type=type,
        status=status,
        last_probe_time=at,
        last_transition_time=at,
        reason=reason,
        message=message,
    )


def find(conditions: Iterable[JobCondition], type: str) -> JobCondition | None:
    return next((one for one in conditions if one.type == type), None)


def verdict(job: Job, pods: Sequence[Pod], state: State, now: datetime) -> JobCondition | None:
    """One of three: Failed when it was decided before that the Job fails, FailureTarget when it is now,
    SuccessCriteriaMet. That all has succeeded is decided later, when no pod is active."""
    for type in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        standing = find(job.status.conditions, type)
        if standing is not None and standing.status == "True":
            failed = type == FAILURE_TARGET
            return condition(FAILED, standing.reason, standing.message, now) if failed else standing
    if job.spec.pod_failure_policy is not None:
        for pod in pods:
            if has_failed(job, pod) and (message := judge(job, pod).message):
                return condition(FAILURE_TARGET, "PodFailurePolicy", message, now)
    for is_met, reason, message in (
        (
            state.failed > (job.spec.backoff_limit or 0) or restarted_too_often(job, pods),
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        ),
        (
            deadline_in(job, now) == 0,
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ),
        (
            too_many_indexes_failed(job, state),
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        ),
        (
            all_indexes_settled(job, state),
            "FailedIndexes",
            "Job has failed indexes",
        ),
    ):
        if is_met:
            return condition(FAILURE_TARGET, reason, message, now)
    if state.completed and (message := policies.success(job, state.completed)):
        return condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message, now)
    return None


def restarted_too_often(job: Job, pods: Iterable[Pod]) -> bool:
    """Of pods whose containers start again after a failure."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    standing = (pod.status for pod in pods if pod.status.phase in ("Running", "Pending"))
    count = sum(
        one.restart_count
        for status in standing
        for one in (*status.init_container_statuses, *status.container_statuses)
    )
    return count >= max(job.spec.backoff_limit or 0, 1)


def deadline_in(job: Job, now: datetime) -> float | None:
    """Seconds until the Job's time is over; None while it has no end."""
    seconds, status = job.spec.active_deadline_seconds, job.status
    if seconds is None or not status.start_time or job.spec.suspend:
        return None
    end = parse_time(status.start_time) + timedelta(seconds=seconds)
    return max((end - now).total_seconds(), 0.0)


def too_many_indexes_failed(job: Job, state: State) -> bool:
    most, failed = job.spec.max_failed_indexes, state.failed_indexes
    return most is not None and failed is not None and total(failed) > most


def all_indexes_settled(job: Job, state: State) -> bool:
    """Though some have failed."""
    failed = total(state.failed_indexes or [])
    return failed > 0 and failed + total(state.completed or []) >= (job.spec.completions or 0)


def is_complete(job: Job, succeeded: int, active: int) -> bool:
    wanted = 1 if job.spec.completions is None else job.spec.completions
    return succeeded >= wanted and not active


def next_step(job: Job, pods: Sequence[Pod], state: State, now: datetime) -> Step:
    """What is to be done so that as many pods are active as shall be. A pod that is not tracked would never
    count, so it is removed: it had been about to be."""
    active = state.active
    untracked = [pod for pod in active if not is_tracked(pod)]
    if job.spec.suspend:
        return Remove(active)
    wanted = wanted_active(job, state)
    if going := (untracked or surplus(job, active, len(active) - wanted)):
        return Remove(going[:MOST_AT_ONCE])
    ending = [pod for pod in pods if is_terminating(pod)] if policies.replaces_failed_only(job) else []
    missing = wanted - len(active) - len(ending)
    if missing <= 0:
        return Make([])
    if job.spec.backoff_limit_per_index is None and (seconds := policies.delay(state.failures, now)):
        return Wait(seconds)
    count = min(missing, MOST_AT_ONCE)
    if state.completed is None:
        return Make([None] * count)
    taken = union(state.completed, state.failed_indexes or [])
    taken = union(taken, as_ranges(indexes(job, [*active, *ending])))
    pending = first_missing(taken, job.spec.completions or 0, count)
    delays = {index: policies.index_delay(state.waiting.get(index), now) for index in pending}
    due = [index for index in pending if not delays[index]]
    return Make(due) if due or not delays else Wait(min(delays.values()))


def wanted_active(job: Job, state: State) -> int:
    parallelism = job.spec.parallelism or 0
    if job.spec.completions is not None:
        return max(min(job.spec.completions - state.succeeded, parallelism), 0)
    # After the first success those that run are waited for, and no other is made.
    return len(state.active) if state.succeeded else parallelism


def surplus(job: Job, active: Sequence[Pod], least: int) -> Sequence[Pod]:
    """At least so many of the active pods: those of an index that another pod has or the Job has not, then
    those that have come least far."""
    ordered = sorted(active, key=_progress)
    if not is_indexed(job):
        return ordered[: max(least, 0)]
    by_index: dict[int | None, list[Pod]] = {}
    for pod in ordered:
        by_index.setdefault(index_of(job, pod), []).append(pod)
    going = by_index.pop(None, [])
    for same in by_index.values():
        going += same[:-1]
    left = sorted((same[-1] for same in by_index.values()), key=_progress)
    return going + left[: max(least - len(going), 0)]


def _progress(pod: Pod) -> tuple[object, ...]:
    """Of two active pods the lower one goes first."""
    since = ready_since(pod)
    return (
        bool(pod.spec.node_name),
        PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        -since.timestamp() if since else float("-inf"),
        *(-count for count in restarts(pod)),
        -parse_time(pod.metadata.creation_timestamp).timestamp(),
    )
