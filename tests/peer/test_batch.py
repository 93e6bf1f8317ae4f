"""R-SYS-8: Jobs and CronJobs are defaulted, validated and changed as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server

BATCH = "/apis/batch/v1/namespaces/{ns}"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
JOBS, CRON_JOBS = f"{BATCH}/jobs", f"{BATCH}/cronjobs"
TEMPLATE: dict[str, Any] = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
}
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"template": TEMPLATE},
}
INDEXED: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "x"},
    "spec": {"completionMode": "Indexed", "completions": 5, "parallelism": 2, "template": TEMPLATE},
}
LABELLED: dict[str, Any] = changed(JOB, "spec.template.metadata.labels", {"app": "a"})
CRON: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "n"},
    "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
}
MATCHING = {"matchLabels": {"app": "a"}}


def failing(*rules: Any) -> dict[str, Any]:
    return {"rules": list(rules)}


ON_CODES = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}
ON_CONDITION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}

IN_SPEC: list[tuple[str, Any]] = [
    *((name, value) for name in (
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    ) for value in (-1, 0, 3)),
    ("completionMode", "Odd"),
    ("completionMode", "Indexed"),
    ("completionMode", "NonIndexed"),
    ("completionMode", ""),
    ("suspend", True),
    ("managedBy", "acme.io/foo"),
    ("managedBy", "kubernetes.io/job-controller"),
    ("managedBy", "foo"),
    ("managedBy", ""),
    ("managedBy", "a_b/foo"),
    ("managedBy", "a.b/" + "f" * 70),
    ("podReplacementPolicy", "Failed"),
    ("podReplacementPolicy", "TerminatingOrFailed"),
    ("podReplacementPolicy", "Odd"),
    ("template.spec.restartPolicy", "OnFailure"),
    ("template.spec.restartPolicy", "Always"),
    ("template.spec.restartPolicy", GONE),
    ("template.spec.restartPolicy", "Odd"),
    ("template.spec.containers", []),
    ("template.spec.activeDeadlineSeconds", 5),
    ("template", GONE),
    ("template.spec.nodeSelector", {"beta.kubernetes.io/os": "linux"}),
    ("selector", {}),
    ("selector", MATCHING),
    ("selector", {"matchLabels": {"-": "b"}}),
    ("manualSelector", True),
    ("manualSelector", False),
    ("successPolicy", {"rules": [{"succeededCount": 1}]}),
    ("unknown", 1),
    *(("podFailurePolicy", failing(*rules)) for rules in (
        (),
        (ON_CODES,),
        (ON_CONDITION,),
        (ON_CODES, ON_CONDITION),
        (ON_CODES,) * 21,
        ({"action": "Ignore"},),
        ({**ON_CODES, **ON_CONDITION},),
        ({**ON_CODES, "action": "FailIndex"},),
        ({**ON_CODES, "action": "Odd"},),
        ({**ON_CODES, "action": ""},),
        ({"action": "Count", "onExitCodes": {"operator": "In", "values": []}},),
        ({"action": "Count", "onExitCodes": {"operator": "In", "values": [0, 1]}},),
        ({"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0, 1]}},),
        ({"action": "Count", "onExitCodes": {"operator": "In", "values": [2, 1]}},),
        ({"action": "Count", "onExitCodes": {"operator": "In", "values": [1, 1]}},),
        ({"action": "Count", "onExitCodes": {"operator": "Odd", "values": [1]}},),
        ({"action": "Count", "onExitCodes": {"values": [1]}},),
        ({"action": "Count", "onExitCodes": {"operator": "In", "values": list(range(1, 260))}},),
        ({"action": "Count", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1]}},),
        ({"action": "Count", "onExitCodes": {"containerName": "d", "operator": "In", "values": [1]}},),
        ({"action": "Count", "onPodConditions": [{"type": "A", "status": "Odd"}]},),
        ({"action": "Count", "onPodConditions": [{"type": "-", "status": "False"}]},),
        ({"action": "Count", "onPodConditions": [{"type": "A"}] * 21},),
    )),
]  # fmt: skip
OF_JOB: list[tuple[str, Any]] = [
    *((f"spec.{path}", value) for path, value in IN_SPEC),
    ("metadata.name", "No_Name"),
    ("metadata.name", "a.b"),
    ("metadata.name", "a" * 63),
    ("metadata.labels", {"x": "y"}),
    ("metadata.labels", {"a": "-"}),
    ("spec.template.metadata.labels", {"app": "a"}),
    ("spec.template.metadata.labels", {"job-name": "other"}),
    ("spec.template.metadata.labels", {"batch.kubernetes.io/controller-uid": "other"}),
    ("spec", {"template": {**TEMPLATE, "metadata": {"labels": {"app": "a"}}}, "selector": MATCHING,
              "manualSelector": True}),
    ("spec", {"template": {**TEMPLATE, "metadata": {"labels": {"app": "b"}}}, "selector": MATCHING,
              "manualSelector": True}),
    ("spec", {"template": {**TEMPLATE, "metadata": {"labels": {"app": "a"}}}, "selector": MATCHING}),
    ("spec", {"template": {**TEMPLATE, "metadata": {"labels": {"app": "a"}}}, "selector": {},
              "manualSelector": True}),
    ("status", {"active": 4}),
    ("spec", GONE),
]  # fmt: skip
SUCCESSES: list[list[dict[str, Any]]] = [
    [],
    [{}],
    [{"succeededCount": 1}],
    [{"succeededCount": 0}],
    [{"succeededCount": -1}],
    [{"succeededCount": 6}],
    [{"succeededIndexes": "0-2"}],
    [{"succeededIndexes": "0-2,4", "succeededCount": 4}],
    [{"succeededIndexes": "0-2,4", "succeededCount": 5}],
    [{"succeededIndexes": ""}],
    [{"succeededIndexes": "0-9"}],
    [{"succeededIndexes": "9"}],
    [{"succeededIndexes": "a"}],
    [{"succeededIndexes": "1-a"}],
    [{"succeededIndexes": "1-2-3"}],
    [{"succeededIndexes": "3,1"}],
    [{"succeededIndexes": "3-1"}],
    [{"succeededIndexes": "1-1"}],
    [{"succeededIndexes": "1,1"}],
    [{"succeededIndexes": "-1"}],
    [{"succeededIndexes": "1,"}],
    [{"succeededCount": 1}] * 21,
]
OF_INDEXED: list[tuple[str, Any]] = [
    ("spec.completions", GONE),
    ("spec.completions", 0),
    ("spec.completions", 200_000),
    ("spec.parallelism", 100_001),
    ("spec.backoffLimitPerIndex", 1),
    ("spec.backoffLimitPerIndex", 0),
    ("spec.maxFailedIndexes", 2),
    ("metadata.name", "a.b"),
    ("metadata.name", "a" * 62),
    *((("spec"), {**INDEXED["spec"], "backoffLimitPerIndex": 1, **more}) for more in (
        {"maxFailedIndexes": 2},
        {"maxFailedIndexes": 6},
        {"maxFailedIndexes": 100_001},
        {"completions": 200_000},
        {"completions": 200_000, "parallelism": 10_001},
        {"completions": 200_000, "maxFailedIndexes": 10_001},
        {"completions": 200_000, "maxFailedIndexes": 100_001},
        {"podFailurePolicy": failing({**ON_CODES, "action": "FailIndex"})},
    )),
    ("spec", {**INDEXED["spec"], "completions": 200_000, "parallelism": 20_000}),
    *(("spec.successPolicy", {"rules": rules}) for rules in SUCCESSES),
]  # fmt: skip
SCHEDULES = [
    "0 0 * * *", "1-5/2 */3 ? JAN-dec mon-FRI", "1,2,3 * * * *", "5/10 * * * *", "@hourly", "@daily",
    "@every 5m", "@every 1h30m10s", "@every 1.5h", "@every 5", "@every x", "@every 5x", "@every ",
    "@every -5m", "@odd", "@", "@reboot", "", " ", "*", "* * * *", "* * * * * *",
    "60 * * * *", "* 24 * * *", "* * 0 * *",
    "* * 32 * *", "* * * 13 *", "* * * 0 *", "* * * * 7", "x * * * *", "* * * x *", "-1 * * * *",
    "5-1 * * * *", "*/0 * * * *", "*/x * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "*-5 * * * *", ", * * * *",
    "1, * * * *",
    "TZ=UTC * * * * *", "CRON_TZ=Europe/Berlin 0 0 * * *", "TZ=Nowhere * * * * *", "TZ=UTC", "TZ=UTC *",
    "+5 * * * *", "99999999999999999999 * * * *", "* * * * * TZ",
    "1-x * * * *", "1.5 * * * *", "* * L * *", "*/61 * * * *",
]  # fmt: skip
ZONES = ["UTC", "Europe/Berlin", "Etc/UTC", "", "Local", "local", "Nowhere", "europe/berlin", "../etc",
         "/etc",         "America", "EST", "Continent/Zone", "utc"]  # fmt: skip
OF_CRON: list[tuple[str, Any]] = [
    *(("spec.schedule", schedule) for schedule in SCHEDULES),
    *(("spec.timeZone", zone) for zone in ZONES),
    *((f"spec.jobTemplate.spec.{path}", value) for path, value in IN_SPEC),
    ("spec", {**CRON["spec"], "schedule": "TZ=UTC * * * * *", "timeZone": "UTC"}),
    ("spec.schedule", GONE),
    ("spec.startingDeadlineSeconds", -1),
    ("spec.startingDeadlineSeconds", 5),
    ("spec.concurrencyPolicy", "Forbid"),
    ("spec.concurrencyPolicy", "Replace"),
    ("spec.concurrencyPolicy", "Odd"),
    ("spec.suspend", True),
    ("spec.successfulJobsHistoryLimit", 0),
    ("spec.successfulJobsHistoryLimit", -1),
    ("spec.failedJobsHistoryLimit", 0),
    ("spec.failedJobsHistoryLimit", -1),
    ("spec.jobTemplate.metadata", {"labels": {"a": "-"}, "name": "No_Name"}),
    ("spec.jobTemplate", GONE),
    ("spec", GONE),
    ("metadata.name", "No_Name"),
    ("metadata.name", "a.b"),
    ("metadata.name", "a" * 52),
    ("metadata.name", "a" * 53),
    ("metadata.labels", {"a": "-"}),
    ("metadata.generation", 7),
    ("status", {"lastScheduleTime": "2026-01-01T00:00:00Z"}),
]
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"x": "y"}),
    ("metadata.labels", None),
    ("spec.parallelism", 4),
    ("spec.parallelism", -4),
    ("spec.completions", 4),
    ("spec.completions", None),
    ("spec", {"completions": 3, "parallelism": 3}),
    ("spec.activeDeadlineSeconds", 9),
    ("spec.backoffLimit", 9),
    ("spec.ttlSecondsAfterFinished", 9),
    ("spec.completionMode", "Indexed"),
    ("spec.completionMode", "NonIndexed"),
    ("spec.backoffLimitPerIndex", 2),
    ("spec.managedBy", "acme.io/foo"),
    ("spec.podFailurePolicy", failing(ON_CODES)),
    ("spec.podReplacementPolicy", "Failed"),
    ("spec.successPolicy", {"rules": [{"succeededCount": 1}]}),
    ("spec.selector", MATCHING),
    ("spec.manualSelector", True),
    ("spec.template.metadata.labels", {"app": "new"}),
    ("spec.template.spec.nodeSelector", {"a": "b"}),
    ("spec.template.spec.restartPolicy", "OnFailure"),
    ("spec.template.spec.containers", [{"name": "c", "image": "other"}]),
    ("status", {"active": 5}),
    ("spec.suspend", True),
    ("spec", None),
]
CRON_UPDATES: list[tuple[str, Any]] = [
    ("spec.schedule", "@daily"),
    ("spec.schedule", "bad"),
    ("spec.schedule", "TZ=UTC * * * * *"),
    ("spec.timeZone", "Europe/Berlin"),
    ("spec.timeZone", "Nowhere"),
    ("spec.concurrencyPolicy", "Forbid"),
    ("spec.suspend", True),
    ("spec.jobTemplate.spec.parallelism", 3),
    ("spec.jobTemplate.spec.template.spec.restartPolicy", "Always"),
    ("spec.jobTemplate.spec.template.spec.restartPolicy", "OnFailure"),
    ("metadata.labels", {"x": "y"}),
    ("status", {"lastScheduleTime": "2026-01-01T00:00:00Z"}),
    ("spec", None),
]
NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"


def conditions(*types: str) -> list[dict[str, str]]:
    return [{"type": type, "status": "True"} for type in types]


STATUSES: list[dict[str, Any]] = [
    {"active": 2, "ready": 1, "terminating": 1, "startTime": NOON},
    *({name: -1} for name in ("active", "succeeded", "failed", "ready", "terminating")),
    {"active": 1, "ready": 2},
    {"active": 0, "ready": 0},
    {"uncountedTerminatedPods": {"succeeded": ["a", "b"], "failed": ["c"]}},
    {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": [""]}},
    {"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a"]}},
    {"uncountedTerminatedPods": None},
    {"completedIndexes": "1"},
    {"completedIndexes": "0-2"},
    {"completedIndexes": "9"},
    {"completedIndexes": "x"},
    {"failedIndexes": "1"},
    {"failedIndexes": "9"},
    {"failedIndexes": ""},
    {"completedIndexes": "0-2", "failedIndexes": "2-3"},
    {"completedIndexes": "0-1", "failedIndexes": "2-3"},
    {"completionTime": NOON},
    {"startTime": LATER},
    {"startTime": None},
    {"conditions": conditions("Complete")},
    {"conditions": conditions("Failed")},
    {"conditions": conditions("Complete", "Failed")},
    {"conditions": conditions("SuccessCriteriaMet", "FailureTarget")},
    {"conditions": conditions("SuccessCriteriaMet", "Failed")},
    {"conditions": conditions("Complete", "FailureTarget")},
    {"conditions": conditions("Complete", "SuccessCriteriaMet"), "completionTime": "2025-01-01T00:00:00Z"},
    {"conditions": conditions("Complete", "SuccessCriteriaMet"), "completionTime": LATER, "active": 3},
    {"conditions": conditions("Complete", "SuccessCriteriaMet"), "completionTime": LATER, "terminating": 3,
     "uncountedTerminatedPods": {"succeeded": ["a"]}},
    {"succeeded": 2, "failed": 2},
    {"succeeded": 1},
    {"failed": 1},
    {"conditions": conditions("Suspended")},
]  # fmt: skip
ENDINGS: dict[str, list[dict[str, Any]]] = {
    "complete": [
        {"startTime": NOON, "conditions": conditions("SuccessCriteriaMet")},
        {"conditions": []},
        {"conditions": conditions("Complete", "SuccessCriteriaMet"), "completionTime": LATER},
        {"conditions": conditions("SuccessCriteriaMet")},
        {"completionTime": NOON},
        {"completionTime": None},
        {"startTime": None},
        {"active": 1},
        {"conditions": conditions("Complete", "SuccessCriteriaMet", "Failed", "FailureTarget")},
    ],
    "failed": [
        {"startTime": NOON, "conditions": conditions("FailureTarget")},
        {"conditions": []},
        {"conditions": conditions("FailureTarget", "Failed")},
        {"conditions": conditions("FailureTarget")},
        {"active": 1},
        {"completionTime": LATER},
    ],
}


def status(target: str, base: dict[str, Any], statuses: list[dict[str, Any]]) -> list[Ask]:
    asks = updated(target, base, [("status", one) for one in statuses])
    return [
        Ask(
            ask.method, f"{ask.target}/status" if ask.method == "PATCH" else ask.target, ask.body, ask.headers
        )
        for ask in asks
    ]


def deleted(target: str, base: dict[str, Any]) -> list[Ask]:
    place = f"{target}/{base['metadata']['name']}"
    asks = []
    bodies: list[Any] = [
        {"propagationPolicy": "Background"},
        {"propagationPolicy": "Orphan"},
        {"orphanDependents": False},
        {"orphanDependents": True},
        {"propagationPolicy": "Foreground"},
        None,
    ]
    for i, body in enumerate(bodies):
        made = changed(base, "metadata.name", f"d{i}")
        asks += [
            Ask("POST", target, made),
            Ask("DELETE", f"{target}/d{i}", body),
            Ask("GET", f"{target}/d{i}"),
        ]
    return [
        *asks,
        Ask("POST", target, base),
        Ask("DELETE", f"{place}?dryRun=All"),
        Ask("DELETE", f"{place}?propagationPolicy=Background&dryRun=All"),
        Ask("DELETE", target),
        Ask("GET", place),
        Ask("DELETE", f"{target}/missing"),
    ]


def seen(target: str, base: dict[str, Any]) -> list[Ask]:
    place = f"{target}/{base['metadata']['name']}"
    return [
        Ask("POST", target, base),
        Ask("GET", place, headers=TABLE),
        Ask("GET", target, headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=status.successful%3D0"),
        Ask("GET", f"{target}?labelSelector=x"),
        Ask("POST", f"{place}/status", {}),
        Ask("GET", f"{place}/status"),
        Ask("PUT", place, base),
        Ask("GET", place),
    ]


HELD_UPDATES: list[tuple[str, Any]] = [
    ("spec.template.spec.tolerations", [{"key": "a", "operator": "Exists"}]),
    ("spec.template.metadata.annotations", {"a": "b"}),
    ("spec.template.spec.schedulingGates", [{"name": "a.b/c"}]),
    ("spec.template.spec.affinity", {"podAntiAffinity": {}}),
    ("spec.template.spec.affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}),
    ("spec.template.spec.containers",
     [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]),
]  # fmt: skip
HELD = {"suspend": True, "template": TEMPLATE}


def shrunk() -> list[Ask]:
    """An indexed Job gets fewer indexes than have completed: what the status said of them stays sayable."""
    place, merge = f"{JOBS}/shrinks", {"Content_Type": "application/merge-patch+json"}
    many = {"completions": 5, "parallelism": 5, "backoffLimitPerIndex": 1}
    job = changed(INDEXED, "metadata.name", "shrinks")
    done = {"startTime": NOON, "completedIndexes": "0,2-4", "failedIndexes": "1", "succeeded": 4, "failed": 1}

    def to(status: dict[str, Any]) -> Ask:
        return Ask("PATCH", f"{place}/status", {"status": status}, merge)

    return [
        Ask("POST", JOBS, {**job, "spec": {**job["spec"], **many}}),
        to(done),
        Ask("PATCH", place, {"spec": {"completions": 3, "parallelism": 3}}, merge),
        to({"active": 1}),
        to({"active": 0, "ready": 0}),
        to({"completedIndexes": "0,2-3"}),
        to({"completedIndexes": "0,2", "succeeded": 2}),
        to({"failedIndexes": "0"}),
        to({"failedIndexes": "4"}),
        Ask("PATCH", place, {"spec": {"completions": 1, "parallelism": 1}}, merge),
        to({"active": 1}),
        to({"failedIndexes": None}),
        to({"active": 0, "completedIndexes": None, "succeeded": 2}),
    ]


SEQUENCES = [
    Compared("jobs: created", created(JOBS, JOB, OF_JOB)),
    Compared("jobs: indexed", created(JOBS, INDEXED, OF_INDEXED)),
    Compared("jobs: updated", updated(JOBS, LABELLED, UPDATES)),
    Compared("jobs: updated indexed", updated(JOBS, INDEXED, UPDATES)),
    Compared("jobs: updated held", updated(JOBS, {**JOB, "spec": HELD}, HELD_UPDATES + UPDATES)),
    Compared("jobs: status", status(JOBS, JOB, STATUSES)),
    Compared(
        "jobs: status indexed", status(JOBS, changed(INDEXED, "spec.backoffLimitPerIndex", 1), STATUSES)
    ),
    *(Compared(f"jobs: {how}", status(JOBS, JOB, ending)) for how, ending in ENDINGS.items()),
    Compared("jobs: shrunk", shrunk()),
    Compared("jobs: deleted", deleted(JOBS, JOB)),
    Compared("jobs: seen", seen(JOBS, JOB)),
    Compared("cronjobs: created", created(CRON_JOBS, CRON, OF_CRON)),
    Compared("cronjobs: updated", updated(CRON_JOBS, CRON, CRON_UPDATES)),
    Compared(
        "cronjobs: status",
        status(
            CRON_JOBS,
            CRON,
            [{"lastScheduleTime": NOON, "active": [{"name": "x"}]}, {"lastScheduleTime": None}],
        ),
    ),
    Compared("cronjobs: deleted", deleted(CRON_JOBS, CRON)),
    Compared("cronjobs: seen", seen(CRON_JOBS, CRON)),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_batch(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
