"""What a Job's status says of its pods, each counted once whenever the controller ends. Pure.

A pod that has ended keeps a finalizer until the status has it: its uid stands in `uncountedTerminatedPods`,
or its index among the completed ones. Then the finalizer goes, and then the uid, for which a counter gets one
more. Whoever goes on finds the finalizer, or the uid, or what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from podling.controllers.workloads.job_policies import has_failed, index_of, judge
from podling.controllers.workloads.job_state import State, completed_before, condition, find
from podling.model.rules.indexes import as_ranges, has_index, total, union, write_indexes
from podling.model.rules.jobs import (
    COMPLETE,
    FAILED,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    is_indexed,
    is_tracked,
)
from podling.model.time import rfc3339
from podling.model.types.batch import Job, JobCondition, JobStatus, UncountedTerminatedPods
from podling.model.types.pod import Pod

MOST_UNCOUNTED = 500


class Done(NamedTuple):
    """How many pods are active, ready and terminating after what was done, and how the Job ends, if it is
    decided and all has been done for it. `was_managed`: whether pods were made and removed as it says."""

    active: int
    ready: int
    terminating: int
    verdict: JobCondition | None
    was_managed: bool


class Tracking(NamedTuple):
    """The status to be written before the finalizers of `released` go. `end` is the last condition of the
    Job, which it gets when all are counted; None as long as it runs."""

    status: JobStatus
    released: Sequence[Pod]
    end: JobCondition | None


def track(job: Job, pods: Sequence[Pod], state: State, done: Done, now: datetime) -> Tracking:
    tracked = [pod for pod in pods if is_tracked(pod)]
    if is_indexed(job):
        tracked.sort(key=_index(job))
    status = replace(
        counted(job.status, {pod.metadata.uid for pod in tracked}),
        active=done.active,
        ready=done.ready,
        terminating=done.terminating,
    )
    standing = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded, failed = list(standing.succeeded), list(standing.failed)
    before, found = completed_before(job), set[int]()
    known = {*succeeded, *failed}
    released: list[Pod] = []
    is_whole = True
    for pod in tracked:
        uid, is_over = pod.metadata.uid, has_failed(job, pod)
        if not may_go(job, pod, state, done, is_over=is_over):
            continue
        released.append(pod)
        index = index_of(job, pod)
        if uid in known or (is_indexed(job) and index is None):
            continue
        if pod.status.phase == "Succeeded":
            if index is None:
                succeeded.append(uid)
            elif not has_index(before, index):
                found.add(index)
        elif (is_over or will_fail(done.verdict)) and judge(job, pod).counts:
            failed.append(uid)
        if len(found) + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            is_whole = pod is tracked[-1]
            break
    status = replace(
        status,
        uncounted_terminated_pods=UncountedTerminatedPods(succeeded=succeeded, failed=failed),
    )
    if state.completed is not None:
        completed = union(before, as_ranges(found))
        limited = state.failed_indexes is not None
        status = replace(
            status,
            succeeded=total(completed),
            completed_indexes=write_indexes(completed),
            failed_indexes=write_indexes(state.failed_indexes or []) if limited else None,
        )
    status = replace(status, conditions=decided(status.conditions, done.verdict))
    return Tracking(status, released, ended(done.verdict, now) if is_whole else None)


def _index(job: Job) -> Callable[[Pod], int]:
    def key(pod: Pod) -> int:
        index = index_of(job, pod)
        return -1 if index is None else index

    return key


def may_go(job: Job, pod: Pod, state: State, done: Done, *, is_over: bool) -> bool:
    """Whether the finalizer of a pod is not needed any more once the status has it."""
    if job.metadata.deletion_timestamp or done.verdict is not None or pod.status.phase == "Succeeded":
        return True
    index = index_of(job, pod)
    waiting = state.waiting.get(index) if index is not None else None
    return is_over and (waiting is None or waiting.metadata.uid != pod.metadata.uid)


def counted(status: JobStatus, tracked: Set[str]) -> JobStatus:
    """Those without a finalizer move from the lists to the counters. `tracked`: the uids of the others."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    return replace(
        status,
        succeeded=status.succeeded + len(uncounted.succeeded) - len(succeeded),
        failed=status.failed + len(uncounted.failed) - len(failed),
        uncounted_terminated_pods=UncountedTerminatedPods(succeeded=succeeded, failed=failed),
    )


def will_fail(verdict: JobCondition | None) -> bool:
    return verdict is not None and verdict.type != SUCCESS_CRITERIA_MET


def decided(conditions: Sequence[JobCondition], verdict: JobCondition | None) -> list[JobCondition]:
    is_new = verdict is not None and verdict.type != FAILED and find(conditions, verdict.type) is None
    return [*conditions, verdict] if verdict is not None and is_new else list(conditions)


def ended(verdict: JobCondition | None, now: datetime) -> JobCondition | None:
    if verdict is None:
        return None
    type = FAILED if will_fail(verdict) else COMPLETE
    return condition(type, verdict.reason, verdict.message, now)


def finished(status: JobStatus, end: JobCondition | None) -> JobStatus | None:
    """None while the Job is not."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    if end is None or uncounted.succeeded or uncounted.failed or status.terminating:
        return None
    return replace(
        status,
        conditions=put(status.conditions, end),
        completion_time=(end.last_transition_time or "") if end.type == COMPLETE else status.completion_time,
    )


def put(conditions: Iterable[JobCondition], new: JobCondition) -> list[JobCondition]:
    """In the place of the one of its type, if there is one; one that says the same stays."""
    every = list(conditions)
    standing = find(every, new.type)
    if standing is None:
        return [*every, new] if new.status != "False" else every
    if (standing.status, standing.reason, standing.message) == (new.status, new.reason, new.message):
        return every
    return [new if one is standing else one for one in every]


def suspended(job: Job, now: datetime) -> JobStatus:
    """With the condition that says so, or no longer, and when it started."""
    status = job.status
    new = condition(SUSPENDED, "JobSuspended", "Job suspended", now)
    if not job.spec.suspend:
        new = condition(SUSPENDED, "JobResumed", "Job resumed", now, "False")
    conditions = put(status.conditions, new)
    if conditions == status.conditions:
        return status
    # Its deadline counts from when it goes on.
    return replace(status, conditions=conditions, start_time="" if job.spec.suspend else rfc3339(now))


def decided_complete(now: datetime) -> JobCondition:
    message = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, now)
