"""What the status of a Job may say, and how it may change."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.field import IMMUTABLE, at_least, duplicate, internal, invalid, required
from podling.model.errors import Cause
from podling.model.rules.indexes import overlap, parse_indexes, readable_indexes
from podling.model.rules.jobs import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    INDEXED,
    SUCCESS_CRITERIA_MET,
    has_condition,
    is_finished,
)
from podling.model.types.batch import Job, JobStatus

CONDITIONS = "status.conditions"


def validate_job_status(new: Job, old: Job) -> Iterator[Cause]:
    yield from _validate_counts(new.status)
    yield from _validate_end(new, old)
    if is_finished(new):
        yield from _validate_finished(new.status)
    yield from _validate_indexes(new, old)
    status = new.status
    if is_finished(new) and (status.terminating or 0) > 0:
        why = "terminating>0 is invalid for finished job"
        yield invalid("status.terminating", status.terminating, why)
    if status.ready is not None and status.ready > status.active:
        yield invalid("status.ready", status.ready, "cannot set more ready pods than active")
    yield from _validate_success(new, old)
    yield from _validate_transition(new, old)


def _validate_counts(status: JobStatus) -> Iterator[Cause]:
    for wire, count in (
        ("active", status.active),
        ("succeeded", status.succeeded),
        ("failed", status.failed),
        ("ready", status.ready),
        ("terminating", status.terminating),
    ):
        if count is not None:
            yield from at_least(f"status.{wire}", count, 0)
    uncounted, seen = status.uncounted_terminated_pods, set[str]()
    lists = (("succeeded", uncounted.succeeded), ("failed", uncounted.failed)) if uncounted else ()
    for wire, uids in lists:
        for i, uid in enumerate(uids):
            path = f"status.uncountedTerminatedPods.{wire}[{i}]"
            if not uid:
                yield invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(path, uid)
            seen.add(uid)


def _plain(why: str) -> Cause:
    """Conditions at fault, which are not shown."""
    return Cause("FieldValueInvalid", f"Invalid value: {why}", CONDITIONS)


def _validate_end(job: Job, old: Job) -> Iterator[Cause]:
    status, path = job.status, "status.completionTime"
    is_complete, is_failed = has_condition(job, COMPLETE), has_condition(job, FAILED)
    will_fail, succeeds = has_condition(job, FAILURE_TARGET), has_condition(job, SUCCESS_CRITERIA_MET)
    started, completed = status.start_time, status.completion_time
    if is_complete and is_failed:
        yield _plain("cannot set Complete=True and Failed=true conditions")
    if is_complete and will_fail:
        yield _plain("cannot set Complete=True and FailureTarget=true conditions")
    if completed and not is_complete:
        why = "cannot set completionTime when there is no Complete=True condition"
        yield invalid(path, completed, why)
    if is_complete and not completed:
        yield required(path, "completionTime is required for Complete jobs")
    if completed and started and completed < started:
        yield invalid(path, completed, "must be equal to or after `startTime`")
    if is_failed and not will_fail and not has_condition(old, FAILED):
        yield _plain("cannot set Failed=True condition without the FailureTarget=true condition")
    if is_complete and not succeeds:
        yield _plain("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _validate_success(new: Job, old: Job) -> Iterator[Cause]:
    if not has_condition(new, SUCCESS_CRITERIA_MET):
        if has_condition(new, COMPLETE) and new.spec.success_policy is not None:
            yield _plain("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
        return
    if has_condition(new, FAILED):
        yield _plain("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if has_condition(new, FAILURE_TARGET):
        yield _plain("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if not has_condition(old, SUCCESS_CRITERIA_MET) and has_condition(old, COMPLETE):
        yield _plain("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


def _validate_finished(status: JobStatus) -> Iterator[Cause]:
    if status.active > 0:
        yield invalid("status.active", status.active, "active>0 is invalid for finished job")
    if not status.start_time:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = status.uncounted_terminated_pods
    if uncounted is not None and (uncounted.succeeded or uncounted.failed):
        yield invalid("status.uncountedTerminatedPods", internal(uncounted), "must be empty for finished job")


def _validate_indexes(new: Job, old: Job) -> Iterator[Cause]:
    """What stays as it was is not judged: a Job may get fewer indexes than have completed."""
    spec, completed, failed = new.spec, new.status.completed_indexes, new.status.failed_indexes
    is_new, fails_anew = completed != old.status.completed_indexes, failed != old.status.failed_indexes
    has_limit = spec.backoff_limit_per_index is not None
    for wire, text, is_judged in (
        ("completedIndexes", completed, is_new),
        ("failedIndexes", failed, fails_anew and has_limit),
    ):
        if text is not None and spec.completions is not None and is_judged:
            try:
                parse_indexes(text, spec.completions)
            except ValueError as error:
                yield invalid(f"status.{wire}", text, f"error parsing {wire}: {error}")
    if is_new and spec.completion_mode != INDEXED and completed:
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid("status.completedIndexes", completed, why)
    if fails_anew and failed is not None and not has_limit:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid("status.failedIndexes", failed, why)
    if (is_new or fails_anew) and failed and spec.completions is not None:
        lists = (readable_indexes(text, spec.completions) for text in (completed, failed))
        if (shared := overlap(*lists)) is not None:
            why = f"failedIndexes and completedIndexes overlap at index: {shared}"
            yield invalid("status.failedIndexes", failed, why)


def _validate_transition(new: Job, old: Job) -> Iterator[Cause]:
    ours, theirs = new.status, old.status
    for type in (COMPLETE, FAILED, FAILURE_TARGET):
        if has_condition(old, type) and not has_condition(new, type):
            yield _plain(f"cannot disable the terminal {type}=True condition")
    if has_condition(old, SUCCESS_CRITERIA_MET) and not has_condition(new, SUCCESS_CRITERIA_MET):
        yield _plain("cannot disable the SuccessCriteriaMet=True condition")
    if ours.failed < theirs.failed:
        yield invalid("status.failed", ours.failed, "cannot decrease the failed counter")
    # An indexed Job whose parallelism is its completions may get fewer of both.
    is_elastic = new.spec.completion_mode == INDEXED and new.spec.completions == new.spec.parallelism
    if ours.succeeded < theirs.succeeded and not is_elastic:
        yield invalid("status.succeeded", ours.succeeded, "cannot decrease the succeeded counter")
    if theirs.completion_time and ours.completion_time and ours.completion_time != theirs.completion_time:
        yield invalid("status.completionTime", ours.completion_time, IMMUTABLE)
    if theirs.start_time and ours.start_time != theirs.start_time and not new.spec.suspend:
        why = "field is immutable for unsuspended job once set"
        yield invalid("status.startTime", ours.start_time or None, why)
