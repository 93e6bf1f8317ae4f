"""R-SYS-1: how the status of a Job may change. `tests/peer/test_batch.py` compares it with Kubernetes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podling.apiserver.rules.job_status import validate_job_status
from podling.model.types.batch import Job, JobCondition, JobSpec, JobStatus

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"
SPEC = JobSpec(completion_mode="Indexed", completions=3, parallelism=3, backoff_limit_per_index=1)
BEYOND = JobStatus(start_time=NOON, completed_indexes="0,2-4", failed_indexes="1", succeeded=4, failed=1)
"""Of a Job that had five indexes and has three."""


def faults(old: JobStatus, new: JobStatus, spec: JobSpec = SPEC) -> list[str]:
    return [
        str(cause.field)
        for cause in validate_job_status(Job(spec=spec, status=new), Job(spec=spec, status=old))
    ]


def with_conditions(status: JobStatus, *types: str) -> JobStatus:
    return replace(status, conditions=[JobCondition(type=type, status="True") for type in types])


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"active": 1}, []),
        ({"completed_indexes": "0,2", "succeeded": 2}, []),
        ({"completed_indexes": "0,2-3"}, ["status.completedIndexes"]),
        ({"failed_indexes": "4"}, ["status.failedIndexes"]),
        ({"failed_indexes": "0"}, ["status.failedIndexes"]),
        ({"failed": 0}, ["status.failed"]),
        ({"active": -1}, ["status.active"]),
        ({"ready": 2}, ["status.ready"]),
    ],
)
def test_what_stays_is_not_judged_again(changes: dict[str, object], found: list[str]) -> None:
    assert faults(BEYOND, replace(BEYOND, **changes)) == found


def test_only_an_elastic_job_counts_fewer_successes() -> None:
    fewer = replace(BEYOND, completed_indexes="0,2", succeeded=2)
    assert faults(BEYOND, fewer, replace(SPEC, parallelism=1)) == ["status.succeeded"]


@pytest.mark.parametrize(
    ("before", "after", "changes", "found"),
    [
        ((), ("SuccessCriteriaMet",), {}, []),
        ((), ("Complete",), {"completion_time": LATER}, ["status.conditions"]),
        (("SuccessCriteriaMet",), ("SuccessCriteriaMet", "Complete"), {"completion_time": LATER}, []),
        (("SuccessCriteriaMet",), ("SuccessCriteriaMet", "Complete"), {}, ["status.completionTime"]),
        (("SuccessCriteriaMet",), (), {}, ["status.conditions"]),
        (("FailureTarget",), ("FailureTarget", "Failed"), {}, []),
        (("FailureTarget",), ("FailureTarget", "Failed"), {"active": 1}, ["status.active"]),
        ((), ("Failed",), {}, ["status.conditions"]),
        (("FailureTarget",), ("FailureTarget", "SuccessCriteriaMet"), {}, ["status.conditions"]),
    ],
)
def test_how_a_job_ends(
    before: tuple[str, ...], after: tuple[str, ...], changes: dict[str, object], found: list[str]
) -> None:
    runs = JobStatus(start_time=NOON)
    new = with_conditions(replace(runs, **changes), *after)
    assert faults(with_conditions(runs, *before), new) == found
