"""What a Job and its pods say of each other, which API server and controllers must read alike."""

from __future__ import annotations

from podling.model.rules.status import is_condition_true
from podling.model.types.batch import Job, JobCondition
from podling.model.types.pod import Pod

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
"""Completion modes."""
FAILED_ONLY, TERMINATING_OR_FAILED = "Failed", "TerminatingOrFailed"
"""Policies of replacing pods."""
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
FAILURE_TARGET, SUCCESS_CRITERIA_MET = "FailureTarget", "SuccessCriteriaMet"
"""Conditions that say how a Job will end, from when it is decided until its last pod has ended."""
TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer of a pod that is not counted yet."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod."""
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations of a pod: how many pods of its index failed before it, and how many more that do not count."""
OWN_CONTROLLER = "kubernetes.io/job-controller"
"""What `managedBy` says of a Job that is left to no other."""


def has_condition(job: Job, type: str) -> bool:
    return is_condition_true(job.status.conditions, type)


def end_of(job: Job) -> JobCondition | None:
    """The condition that it is finished by."""
    ends = (one for one in job.status.conditions if one.type in (COMPLETE, FAILED) and one.status == "True")
    return next(ends, None)


def is_finished(job: Job) -> bool:
    return end_of(job) is not None


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == INDEXED


def is_tracked(pod: Pod) -> bool:
    return TRACKING in pod.metadata.finalizers


def is_managed_elsewhere(job: Job) -> bool:
    return job.spec.managed_by not in (None, OWN_CONTROLLER)
