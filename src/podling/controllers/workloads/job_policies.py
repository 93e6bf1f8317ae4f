"""What a Job's policies say of its pods: which failures count, what is success enough, and how long a failure
delays the next pod. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from podling.model.rules.indexes import common, indexes_below, total
from podling.model.rules.jobs import (
    COMPLETION_INDEX,
    FAILED_ONLY,
    INDEX_FAILURES,
    INDEX_IGNORED,
    is_indexed,
)
from podling.model.time import moved, parse_time
from podling.model.types.batch import Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus

COUNT, FAIL_INDEX, FAIL_JOB, IGNORE = "Count", "FailIndex", "FailJob", "Ignore"
LONGEST_GRACE = 1 << 32
"""Seconds; more are beyond all time."""
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=10), timedelta(minutes=10)
MOST_DOUBLINGS = 6
"""After which a delay is the longest."""
LARGEST = (1 << 31) - 1


class Failures(NamedTuple):
    """The failures of a Job's pods since one last succeeded, and when the last of them was."""

    number: int = 0
    last: datetime | None = None


class Failure(NamedTuple):
    """How a failed pod is judged. `action` is that of the rule it matches, if any; `message` says why the
    Job fails for it."""

    action: str = COUNT
    message: str = ""

    @property
    def counts(self) -> bool:
        return self.action != IGNORE


def replaces_failed_only(job: Job) -> bool:
    """Whether a pod that is being deleted is no failure, and not replaced, until it has ended."""
    return job.spec.pod_replacement_policy == FAILED_ONLY or job.spec.pod_failure_policy is not None


def has_failed(job: Job, pod: Pod) -> bool:
    if pod.status.phase == "Failed" or replaces_failed_only(job):
        return pod.status.phase == "Failed"
    # One that is deleted may never get to the phase Failed.
    return bool(pod.metadata.deletion_timestamp) and pod.status.phase != "Succeeded"


def judge(job: Job, pod: Pod) -> Failure:
    """By the first rule that a failed pod matches; without one it counts."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for number, rule in enumerate(job.spec.pod_failure_policy.rules if job.spec.pod_failure_policy else ()):
        if (what := matched(rule, pod, where)) is not None:
            message = f"{what} matching {rule.action} rule at index {number}"
            return Failure(rule.action, message if rule.action == FAIL_JOB else "")
    return Failure()


def matched(rule: PodFailurePolicyRule, pod: Pod, where: str) -> str | None:
    """What of the pod the rule is about, in words."""
    status = pod.status
    if rule.on_exit_codes is not None:
        for one in (*status.container_statuses, *status.init_container_statuses):
            if exited_so(rule.on_exit_codes, one):
                code = one.state.terminated.exit_code if one.state.terminated else 0
                return f"Container {one.name} for pod {where} failed with exit code {code}"
        return None
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions}
    for condition in status.conditions:
        if (condition.type, condition.status) in patterns:
            return f"Pod {where} has condition {condition.type}"
    return None


def exited_so(codes: PodFailurePolicyOnExitCodesRequirement, container: ContainerStatus) -> bool:
    ended = container.state.terminated
    if ended is None or ended.exit_code == 0 or codes.container_name not in (None, container.name):
        return False
    return (ended.exit_code in codes.values) == (codes.operator == "In")


def success(job: Job, completed: list[range]) -> str:
    """Which rule of the success policy is met by the indexes that are completed; empty without one."""
    policy, completions = job.spec.success_policy, job.spec.completions or 0
    for number, rule in enumerate(policy.rules if policy and completed else ()):
        message = f"Matched rules at index {number}"
        if rule.succeeded_indexes is None:
            if rule.succeeded_count is not None and total(completed) >= rule.succeeded_count:
                return message
        elif wanted := indexes_below(rule.succeeded_indexes, completions):
            needed = total(wanted) if rule.succeeded_count is None else rule.succeeded_count
            if common(wanted, completed) >= needed:
                return message
    return ""


def after(before: Failures, succeeded: Iterable[Pod], failed: Sequence[Pod]) -> Failures:
    """With pods that have ended since."""
    last_success = max(map(finished_at, succeeded), default=None)
    times = [at for at in map(finished_at, failed) if last_success is None or at > last_success]
    standing = before if last_success is None else Failures()
    return Failures(standing.number + len(times), max(times)) if times else standing


def delay(failures: Failures, now: datetime) -> float:
    """Seconds until the next pod may be made."""
    if not failures.number or failures.last is None:
        return 0.0
    whole = min(FIRST_DELAY * (1 << min(failures.number - 1, MOST_DOUBLINGS)), LONGEST_DELAY)
    return max((whole - (now - failures.last)).total_seconds(), 0.0)


def index_delay(last: Pod | None, now: datetime) -> float:
    """As `delay`, for an index whose last pod failed."""
    if last is None:
        return 0.0
    return delay(Failures(failures_of_index(last) + 1, finished_at(last)), now)


def failures_of_index(pod: Pod) -> int:
    """How many of its index failed before it, also those that do not count."""
    annotations = pod.metadata.annotations
    return number(annotations.get(INDEX_FAILURES, "")) + number(annotations.get(INDEX_IGNORED, ""))


def has_failed_index(job: Job, pod: Pod) -> bool:
    """Whether the failure of a pod is the last that its index may have."""
    if not has_failed(job, pod):
        return False
    failure, limit = judge(job, pod), job.spec.backoff_limit_per_index or 0
    before = number(pod.metadata.annotations.get(INDEX_FAILURES, ""))
    return failure.action == FAIL_INDEX or (failure.counts and before >= limit)


def index_of(job: Job, pod: Pod) -> int | None:
    """The index of a pod, if the Job has it."""
    text = pod.metadata.annotations.get(COMPLETION_INDEX, "")
    index = number(text, default=-1)
    return index if is_indexed(job) and 0 <= index < (job.spec.completions or 0) else None


def number(text: str, default: int = 0) -> int:
    """`default` for what is no number of 31 bits."""
    plain = text.isascii() and text.isdigit() and len(text) <= 10
    return int(text) if plain and int(text) <= LARGEST else default


def finished_at(pod: Pod) -> datetime:
    """When its last container ended, else when it was no longer ready, else when it was deleted."""
    containers = [one.state.terminated for one in pod.status.container_statuses]
    ends = [one.finished_at for one in containers if one is not None and one.finished_at]
    if ends and len(ends) == len(containers):
        return max(map(parse_time, ends))
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status == "False" and condition.last_transition_time:
            return parse_time(condition.last_transition_time)
    meta = pod.metadata
    if meta.deletion_timestamp:
        grace = max(min(meta.deletion_grace_period_seconds or 0, LONGEST_GRACE), -LONGEST_GRACE)
        return moved(parse_time(meta.deletion_timestamp), timedelta(seconds=-grace))
    return parse_time(meta.creation_timestamp)
