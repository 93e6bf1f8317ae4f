"""R-SYS-1: what a Job and a CronJob may say. `tests/peer/test_batch.py` compares it with Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.rules.jobs import validate_cron_job_name, validate_cron_job_spec, validate_job
from podling.model.codec.json import from_data
from podling.model.types.batch import CronJobSpec, Job

POD = {
    "restartPolicy": "Never",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "containers": [
        {
            "name": "c",
            "image": "i",
            "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File",
            "terminationMessagePath": "/dev/termination-log",
        }
    ],
}
SELECTED = {"a": "b"}
TEMPLATE = {"metadata": {"labels": SELECTED}, "spec": POD}
SPEC = {"manualSelector": True, "selector": {"matchLabels": SELECTED}, "template": TEMPLATE}
INDEXED = {"completionMode": "Indexed", "completions": 3}
CRON = {
    "schedule": "* * * * *",
    "concurrencyPolicy": "Allow",
    "jobTemplate": {"spec": {"template": TEMPLATE}},
}


def job(**changes: Any) -> list[tuple[str, str]]:
    """The faults of a Job that says these fields besides: path below `spec` and reason."""
    data = {"metadata": {"name": "j", "namespace": "ns", "uid": "7"}, "spec": {**SPEC, **changes}}
    causes = validate_job(from_data(data, Job))
    return [(str(one.field).removeprefix("spec."), one.reason.removeprefix("FieldValue")) for one in causes]


def cron(**changes: Any) -> list[tuple[str, str]]:
    spec = from_data({**CRON, **changes}, CronJobSpec)
    causes = validate_cron_job_spec(spec, "spec")
    return [(str(one.field).removeprefix("spec."), one.reason.removeprefix("FieldValue")) for one in causes]


def with_pod(**changes: Any) -> dict[str, Any]:
    return {"template": {**TEMPLATE, "spec": {**POD, **changes}}}


def on_failure(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}}


def on_exit(**codes: Any) -> dict[str, Any]:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1], **codes}}
    return on_failure(rule)


def on_success(**rule: Any) -> dict[str, Any]:
    return {**INDEXED, "successPolicy": {"rules": [rule]}}


RULE, CODES = "podFailurePolicy.rules[0]", "podFailurePolicy.rules[0].onExitCodes"
READY = {"type": "Ready", "status": "True"}
SUCCESS = "successPolicy.rules[0]"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"parallelism": 0, "completions": 0, "backoffLimit": 0, "ttlSecondsAfterFinished": 0}, []),
        ({"parallelism": -1}, [("parallelism", "Invalid")]),
        ({"completions": -1}, [("completions", "Invalid")]),
        ({"activeDeadlineSeconds": -1}, [("activeDeadlineSeconds", "Invalid")]),
        ({"backoffLimit": -1}, [("backoffLimit", "Invalid")]),
        ({"ttlSecondsAfterFinished": -1}, [("ttlSecondsAfterFinished", "Invalid")]),
        ({"selector": None}, [("selector", "Required"), ("template.metadata.labels", "Invalid")]),
        ({"selector": {"matchLabels": {"a": "c"}}}, [("template.metadata.labels", "Invalid")]),
        ({"completionMode": "Other"}, [("completionMode", "NotSupported")]),
        ({"managedBy": "a.example/b"}, []),
        ({"managedBy": ""}, [("managedBy", "Required")]),
        ({"managedBy": "b"}, [("managedBy", "Invalid")]),
        ({"managedBy": "A_/b"}, [("managedBy", "Invalid")]),
        ({"managedBy": "a.example/" + "b" * 54}, [("managedBy", "TooLong")]),
        (with_pod(restartPolicy="OnFailure"), []),
        (with_pod(restartPolicy="Always"), [("template.spec.restartPolicy", "Required")]),
        ({"podReplacementPolicy": "TerminatingOrFailed"}, []),
        ({"podReplacementPolicy": "Other"}, [("podReplacementPolicy", "NotSupported")]),
    ],
)
def test_a_job(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert job(**changes) == found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"completions": None}, [("completions", "Required")]),
        ({"backoffLimitPerIndex": 0, "maxFailedIndexes": 3}, []),
        ({"backoffLimitPerIndex": -1}, [("backoffLimitPerIndex", "Invalid")]),
        ({"maxFailedIndexes": 1}, [("backoffLimitPerIndex", "Required")]),
        ({"backoffLimitPerIndex": 1, "maxFailedIndexes": 4}, [("maxFailedIndexes", "Invalid")]),
        ({"parallelism": 100_001}, [("parallelism", "Invalid")]),
        ({"completions": 100_001, "backoffLimitPerIndex": 1}, [("maxFailedIndexes", "Required")]),
        (
            {
                "completions": 100_001,
                "parallelism": 10_001,
                "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 10_001,
            },
            [("parallelism", "Invalid"), ("maxFailedIndexes", "Invalid")],
        ),
        (
            {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
            [("backoffLimitPerIndex", "Invalid"), ("maxFailedIndexes", "Invalid")],
        ),
    ],
)
def test_an_indexed_job(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert job(**{**INDEXED, **changes}) == found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (on_exit(), []),
        (on_exit(containerName="c"), []),
        (on_exit(containerName="d"), [(f"{CODES}.containerName", "Invalid")]),
        (on_exit(operator=""), [(f"{CODES}.operator", "Required")]),
        (on_exit(operator="Is"), [(f"{CODES}.operator", "NotSupported")]),
        (on_exit(operator="NotIn", values=[0]), []),
        (on_exit(values=[0]), [(f"{CODES}.values[0]", "Invalid")]),
        (on_exit(values=[]), [(f"{CODES}.values", "Invalid")]),
        (on_exit(values=[1, 1]), [(f"{CODES}.values[1]", "Duplicate")]),
        (on_exit(values=[2, 1]), [(f"{CODES}.values", "Invalid")]),
        (on_exit(values=list(range(1, 257))), [(f"{CODES}.values", "TooMany")]),
        (on_failure({"action": "FailJob", "onPodConditions": [READY]}), []),
        (on_failure({"action": "FailJob"}), [(RULE, "Invalid")]),
        (on_failure({"onPodConditions": [READY]}), [(f"{RULE}.action", "Required")]),
        (on_failure({"action": "Other", "onPodConditions": [READY]}), [(f"{RULE}.action", "NotSupported")]),
        (on_failure({"action": "FailIndex", "onPodConditions": [READY]}), [(f"{RULE}.action", "Invalid")]),
        ({**on_exit(), **with_pod(restartPolicy="OnFailure")}, [("template.spec.restartPolicy", "Invalid")]),
        (
            {**on_exit(), "podReplacementPolicy": "TerminatingOrFailed"},
            [("podReplacementPolicy", "NotSupported")],
        ),
    ],
)
def test_when_a_pod_fails(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert job(**changes) == found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (on_success(succeededCount=3), []),
        (on_success(succeededIndexes="0-2", succeededCount=2), []),
        (on_success(), [(SUCCESS, "Required")]),
        (on_success(succeededCount=-1), [(f"{SUCCESS}.succeededCount", "Invalid")]),
        (on_success(succeededCount=4), [(f"{SUCCESS}.succeededCount", "Invalid")]),
        (
            on_success(succeededIndexes="0", succeededCount=2),
            [(f"{SUCCESS}.succeededCount", "Invalid")],
        ),
        (on_success(succeededIndexes="2-1"), [(f"{SUCCESS}.succeededIndexes", "Invalid")]),
        ({**INDEXED, "successPolicy": {"rules": []}}, [("successPolicy.rules", "Required")]),
        ({"successPolicy": {"rules": [{"succeededCount": 1}]}}, [("successPolicy", "Invalid")]),
    ],
)
def test_when_a_job_succeeds(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert job(**changes) == found


def test_a_selector_that_was_not_made_by_the_server() -> None:
    labels = "template.metadata.labels"
    names = (
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    )
    missing = [(f"{labels}[{name}]", "Required") for name in names]
    assert job(manualSelector=False) == [*missing, ("selector", "Invalid")]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"timeZone": "Etc/UTC"}, []),
        ({"schedule": ""}, [("schedule", "Required")]),
        ({"schedule": "often"}, [("schedule", "Invalid")]),
        ({"schedule": "TZ=UTC * * * * *"}, [("schedule", "Invalid")]),
        ({"timeZone": ""}, [("timeZone", "Invalid")]),
        ({"timeZone": "local"}, [("timeZone", "Invalid"), ("timeZone", "Invalid")]),
        ({"startingDeadlineSeconds": -1}, [("startingDeadlineSeconds", "Invalid")]),
        ({"concurrencyPolicy": ""}, [("concurrencyPolicy", "Required")]),
        ({"concurrencyPolicy": "Other"}, [("concurrencyPolicy", "NotSupported")]),
        ({"successfulJobsHistoryLimit": -1}, [("successfulJobsHistoryLimit", "Invalid")]),
        ({"failedJobsHistoryLimit": -1}, [("failedJobsHistoryLimit", "Invalid")]),
        (
            {"jobTemplate": {"spec": {"template": TEMPLATE, "manualSelector": True}}},
            [("jobTemplate.spec.manualSelector", "NotSupported")],
        ),
        (
            {"jobTemplate": {"spec": {"template": TEMPLATE, "selector": {}}}},
            [("jobTemplate.spec.selector", "Invalid")],
        ),
    ],
)
def test_a_cron_job(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert cron(**changes) == found


@pytest.mark.parametrize(("length", "faults"), [(52, 0), (53, 1)])
def test_a_cron_jobs_name_leaves_room_for_those_of_its_jobs(length: int, faults: int) -> None:
    assert len(list(validate_cron_job_name("c" * length))) == faults
