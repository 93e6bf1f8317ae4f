"""R-SYS-8: what fields of workloads mean for each other, in new objects and in every state that an update
finds them in, as in Kubernetes.

Rows of an object are dry runs, so that each meets the same object.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from peer.mutations import GONE, changed
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

DRY = "?dryRun=All"
MERGE, STRATEGIC = {"Content_Type": MERGE_PATCH}, {"Content_Type": STRATEGIC_PATCH}
APPS, BATCH, CORE = (f"/{base}/namespaces/{{ns}}" for base in ("apis/apps/v1", "apis/batch/v1", "api/v1"))
JOBS, CRON_JOBS = f"{BATCH}/jobs", f"{BATCH}/cronjobs"
DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, REVISIONS = (
    f"{APPS}/{plural}"
    for plural in ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions")
)
CONTROLLERS, TEMPLATES = f"{CORE}/replicationcontrollers", f"{CORE}/podtemplates"
EARLY, NOON, LATER = (f"2026-01-01T{hour}:00:00Z" for hour in (11, 12, 13))

Change = Mapping[str, Any]
"""Values by their paths."""
Body = dict[str, Any]


def made(base: Body, change: Change) -> Body:
    for path, value in change.items():
        with suppress(KeyError):
            base = changed(base, path, value)
    return base


def patch(change: Change) -> Body:
    return made({}, {path: None if value is GONE else value for path, value in change.items()})


def each(path: str, *values: Any) -> list[Change]:
    return [{path: value} for value in values]


def pairs(changes: Sequence[Change]) -> Iterator[Change]:
    """Each change, and each with each other one."""
    yield from changes
    for one, other in itertools.combinations(changes, 2):
        if not one.keys() & other.keys():
            yield {**one, **other}


def created(target: str, base: Body, changes: Iterable[Change]) -> list[Ask]:
    return [Ask("POST", f"{target}{DRY}", made(base, one), what=str(dict(one))) for one in changes]


def kept(target: str, base: Body, status: Body | None = None) -> list[Ask]:
    """An object that stays, with this status."""
    asks = [Ask("POST", target, base)]
    if status is not None:
        place = f"{target}/{base['metadata']['name']}/status"
        asks.append(Ask("PATCH", place, {"status": status}, MERGE))
    return asks


def updated(target: str, name: str, changes: Iterable[Change], part: str = "") -> list[Ask]:
    place = f"{target}/{name}{part}{DRY}"
    return [Ask("PATCH", place, patch(one), MERGE, str(dict(one))) for one in changes]


def conditions(**types: str) -> list[Body]:
    return [{"type": type_, "status": status} for type_, status in types.items()]


# Jobs

POD: Body = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
JOB: Body = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "n"},
    "spec": {"template": {"metadata": {"labels": {"app": "a"}}, "spec": POD}},
}
IN_POD, IN_META = "spec.template.spec", "spec.template.metadata"
NODES = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
}
FAILING = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}]
INDEXED: Change = {"spec.completionMode": "Indexed", "spec.completions": 5, "spec.parallelism": 5}
OF_JOBS: list[Change] = [
    {"spec.completionMode": "Indexed"},
    *each("spec.completions", 0, 3),
    *each("spec.parallelism", 0, 2, 200_000),
    *each("spec.backoffLimitPerIndex", 0, 1),
    *each("spec.maxFailedIndexes", 1, 4),
    {"spec.backoffLimit": 1},
    {"spec.suspend": True},
    {"spec.managedBy": "a.test/b"},
    *each("spec.podReplacementPolicy", "Failed", "TerminatingOrFailed"),
    *each(
        "spec.podFailurePolicy.rules",
        FAILING,
        [{"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}],
        [{"action": "Ignore", "onExitCodes": {"containerName": "z", "operator": "NotIn", "values": [0]}}],
    ),
    *each(
        "spec.successPolicy.rules",
        [{"succeededCount": 2}],
        [{"succeededIndexes": "0,2-3"}, {"succeededIndexes": "1", "succeededCount": 2}],
    ),
    *each(f"{IN_POD}.restartPolicy", "OnFailure", "Always", GONE),
    *each("spec.activeDeadlineSeconds", 0, -1),
    {"spec.selector": {"matchLabels": {"app": "a"}}},
    {"spec.manualSelector": True},
    *each("metadata.labels", {"own": "l"}),
    {f"{IN_META}.labels": GONE},
    {f"{IN_META}.labels": {"job-name": "n", "batch.kubernetes.io/job-name": "o"}},
    {f"{IN_POD}.hostname": "h"},
    {f"{IN_POD}.subdomain": "s"},
    {f"{IN_POD}.schedulingGates": [{"name": "a.b/c"}]},
]
CHANGES_OF_JOBS: list[Change] = [
    {},
    *each("spec.suspend", True, False, GONE),
    *each("spec.completions", 3, 7, 0, GONE),
    *each("spec.parallelism", 3, 0, GONE),
    {"spec.completions": 3, "spec.parallelism": 3},
    {"spec.completions": 7, "spec.parallelism": 7},
    {"spec.completions": 3, "spec.parallelism": 2},
    {"spec.completions": GONE, "spec.parallelism": GONE},
    *each("spec.completionMode", "Indexed", "NonIndexed"),
    {"spec.completionMode": "Indexed", "spec.completions": 9},
    *each("spec.backoffLimit", 3, GONE),
    *each("spec.backoffLimitPerIndex", 4, GONE),
    *each("spec.maxFailedIndexes", 2, 9, GONE),
    *each("spec.managedBy", "a.test/b", "kubernetes.io/job-controller", GONE),
    *each("spec.activeDeadlineSeconds", 7, GONE),
    *each("spec.ttlSecondsAfterFinished", 7, GONE),
    *each("spec.podReplacementPolicy", "Failed", "TerminatingOrFailed", GONE),
    *each("spec.podFailurePolicy", {"rules": FAILING}, {"rules": []}, GONE),
    *each("spec.successPolicy", {"rules": [{"succeededCount": 1}]}, GONE),
    *each("spec.manualSelector", True, False),
    *each("spec.selector", {"matchLabels": {"app": "a"}}, GONE),
    *each(
        f"{IN_META}.labels",
        {"app": "z"},
        {"new": "l"},
        {"job-name": None},
        {"app": None, "x": "y"},
        {"batch.kubernetes.io/job-name": None},
        GONE,
    ),
    *each(f"{IN_META}.annotations", {"a": "b"}, GONE),
    *each(f"{IN_META}.name", "n"),
    *each(f"{IN_META}.finalizers", ["a.b/c"]),
    *each(f"{IN_POD}.nodeSelector", {"a": "b"}, GONE),
    *each(f"{IN_POD}.tolerations", [{"key": "a", "operator": "Exists"}], GONE),
    *each(f"{IN_POD}.schedulingGates", [{"name": "a.b/c"}], GONE),
    *each(
        f"{IN_POD}.affinity",
        NODES,
        {**NODES, "podAntiAffinity": {}},
        {"nodeAffinity": {}},
        {"podAffinity": {}},
        GONE,
    ),
    *each(f"{IN_POD}.priorityClassName", "system-node-critical"),
    *each(f"{IN_POD}.schedulerName", "other"),
    *each(f"{IN_POD}.nodeName", "other"),
    *each(f"{IN_POD}.runtimeClassName", "other"),
    *each(f"{IN_POD}.activeDeadlineSeconds", 5),
    *each(f"{IN_POD}.terminationGracePeriodSeconds", 5),
    *each(
        f"{IN_POD}.topologySpreadConstraints",
        [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    *each(f"{IN_POD}.resources", {"requests": {"cpu": "1"}}),
    *each(f"{IN_POD}.resourceClaims", [{"name": "r", "resourceClaimName": "s"}]),
    *each(
        f"{IN_POD}.containers",
        *(
            [{"name": "c", "image": "i", **more}, *others]
            for more, others in (
                ({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}, ()),
                ({"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}}, ()),
                ({"resources": {"claims": [{"name": "r"}]}}, ()),
                ({"env": [{"name": "A", "value": "b"}]}, ()),
                ({"image": "j"}, ()),
                ({}, [{"name": "d", "image": "i"}]),
            )
        ),
    ),
    *each(f"{IN_POD}.initContainers", [{"name": "d", "image": "i"}]),
    {f"{IN_POD}.nodeSelector": {"a": "b"}, "spec.suspend": False},
    {f"{IN_POD}.nodeSelector": {"a": "b"}, "spec.suspend": True},
    {f"{IN_POD}.nodeSelector": {"a": "b"}, f"{IN_META}.labels": {"x": "y"}},
    {f"{IN_POD}.nodeSelector": {"a": "b"}, "spec.podReplacementPolicy": "Failed"},
]
SUSPENDED = conditions(Suspended="True")
STATES_OF_JOBS: dict[str, tuple[Change, Body | None]] = {
    "plain": ({}, None),
    "queue": ({"spec.parallelism": 2}, None),
    "running": ({"spec.completions": 5}, {"startTime": NOON, "active": 1}),
    "held": ({"spec.suspend": True}, None),
    "held-condition": ({"spec.suspend": True}, {"conditions": SUSPENDED}),
    "held-started": ({"spec.suspend": True}, {"startTime": NOON}),
    "held-started-condition": ({"spec.suspend": True}, {"startTime": NOON, "conditions": SUSPENDED}),
    "held-active": ({"spec.suspend": True}, {"active": 1, "conditions": SUSPENDED}),
    "held-terminating": ({"spec.suspend": True}, {"terminating": 1, "conditions": SUSPENDED}),
    "held-only-active": ({"spec.suspend": True}, {"active": 1}),
    "held-started-terminating": (
        {"spec.suspend": True},
        {"startTime": NOON, "terminating": 1, "conditions": SUSPENDED},
    ),
    "held-started-active": (
        {"spec.suspend": True},
        {"startTime": NOON, "active": 1, "conditions": SUSPENDED},
    ),
    "held-not": ({"spec.suspend": True}, {"startTime": NOON, "conditions": conditions(Suspended="False")}),
    "resumed-condition": ({}, {"conditions": SUSPENDED}),
    "indexed": (INDEXED, {"startTime": NOON, "completedIndexes": "0-2", "succeeded": 3}),
    "shrunk": (
        {**INDEXED, "spec.backoffLimitPerIndex": 1},
        {"startTime": NOON, "completedIndexes": "0,2-4", "failedIndexes": "1", "succeeded": 4, "failed": 1},
    ),
    "indexed-apart": ({**INDEXED, "spec.parallelism": 2}, None),
    "policies": (
        {
            **INDEXED,
            "spec.backoffLimitPerIndex": 1,
            "spec.maxFailedIndexes": 2,
            "spec.podFailurePolicy.rules": FAILING,
            "spec.successPolicy.rules": [{"succeededCount": 4}],
            "spec.managedBy": "a.test/b",
        },
        None,
    ),
    "policies-complete": (
        {**INDEXED, "spec.successPolicy.rules": [{"succeededCount": 4}]},
        {
            "startTime": NOON,
            "completionTime": LATER,
            "succeeded": 4,
            "conditions": conditions(SuccessCriteriaMet="True", Complete="True"),
        },
    ),
    "manual": (
        {"spec.manualSelector": True, "spec.selector": {"matchLabels": {"app": "a"}}, "spec.suspend": True},
        None,
    ),
    "rich": (
        {
            "spec.suspend": True,
            f"{IN_POD}.nodeSelector": {"own": "n"},
            f"{IN_POD}.affinity": {**NODES, "podAffinity": {}},
            f"{IN_POD}.tolerations": [{"key": "own", "operator": "Exists"}],
            f"{IN_POD}.schedulingGates": [{"name": "own/c"}],
            f"{IN_POD}.initContainers": [{"name": "d", "image": "i"}],
            f"{IN_META}.annotations": {"own": "a"},
        },
        None,
    ),
    "complete": (
        {},
        {
            "startTime": NOON,
            "completionTime": LATER,
            "succeeded": 1,
            "conditions": conditions(SuccessCriteriaMet="True", Complete="True"),
        },
    ),
    "failed": (
        {"spec.suspend": True},
        {"startTime": NOON, "failed": 1, "conditions": conditions(FailureTarget="True", Failed="True")},
    ),
}
TYPES = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended")
STATUSES_OF_JOBS: list[Change] = [
    {},
    *(
        {"status.conditions": [*conditions(**dict.fromkeys(types, "True"))], **more}
        for count in range(len(TYPES) + 1)
        for types in itertools.combinations(TYPES, count)
        for more in ({}, {"status.completionTime": LATER}, {"status.startTime": NOON, "status.active": 0})
    ),
    {"status.conditions": conditions(Complete="False", Failed="False", SuccessCriteriaMet="Unknown")},
    {"status.conditions": [*conditions(Complete="False"), *conditions(Complete="True")]},
    {"status.conditions": [*conditions(Suspended="True"), *conditions(Suspended="True")]},
    {"status.conditions": [{"type": "", "status": ""}]},
    {"status.conditions": [{"type": "Odd", "status": "odd"}]},
    *each("status.startTime", EARLY, NOON, LATER, GONE),
    *each("status.completionTime", EARLY, NOON, LATER, GONE),
    *each("status.active", 0, 1, 2, -1),
    *each("status.ready", 0, 1, 2, -1, GONE),
    *each("status.terminating", 0, 1, -1, GONE),
    *each("status.succeeded", 0, 1, 9, GONE),
    *each("status.failed", 0, 1, 9, GONE),
    *each("status.completedIndexes", "", "0", "0-4", "0-5", "3,1", GONE),
    *each("status.failedIndexes", "", "0", "3-4", "4,3", "7", GONE),
    {"status.completedIndexes": "0-1", "status.failedIndexes": "2"},
    {"status.completedIndexes": "0-1", "status.failedIndexes": "1"},
    *(
        {"status.completedIndexes": completed, "status.failedIndexes": failed}
        for completed, failed in (
            ("0-1,x", "1"),
            ("x,1", "1"),
            ("3,1", "1"),
            ("3,1", "0,3"),
            ("0-9", "1"),
            ("0", "0-9"),
            (GONE, "2"),
            ("2", GONE),
            ("0,2", "3,2"),
            ("1-2-3,4", "4"),
            ("0,2,4", "1,3"),
            ("0-2,4", "3-4"),
            ("", "1"),
            ("1", ""),
            ("0", "x"),
            ("0,1,2,3", "1,2"),
            ("2-1,3", "2-3"),
            ("4-2", "3"),
        )
    ),
    {"status.completedIndexes": "0-1", "status.succeeded": 1},
    {"status.completedIndexes": "0-1", "status.succeeded": 2},
    {"status.active": 3, "status.ready": 3, "status.terminating": 4},
    {"status.active": 9},
    {"status.active": 1, "status.ready": 2, "status.conditions": conditions(Complete="True")},
    {"status.failed": 0, "status.terminating": 2, "status.conditions": conditions(Complete="True")},
    {"status.uncountedTerminatedPods": {"succeeded": ["a"]}},
    {"status.uncountedTerminatedPods": {"succeeded": ["a"]}, "status.succeeded": 1},
    {"status.uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["", "a", "b", "b"]}},
    {"status.uncountedTerminatedPods": {}},
    {"status.uncountedTerminatedPods": GONE},
    {"status.startTime": EARLY, "status.completionTime": EARLY},
    {"metadata.labels": {"x": "y"}, "spec.parallelism": 3, "spec.suspend": False},
    {"metadata.annotations": {"x": "y"}},
    {"metadata.finalizers": ["a.b/c"]},
]


def of_jobs(name: str) -> list[Ask]:
    change, status = STATES_OF_JOBS[name]
    changes = [
        one
        for one in CHANGES_OF_JOBS
        # Kubernetes' validation of what is to succeed ends in a panic where nobody says how many there are.
        if not (name.startswith("policies") and one.get("spec.completions") is GONE and len(one) == 1)
    ]
    fewer = {"spec": {"completions": 3, "parallelism": 3}}
    return [
        *kept(JOBS, made(JOB, change), status),
        *([Ask("PATCH", f"{JOBS}/n", fewer, MERGE)] if name == "shrunk" else ()),
        *updated(JOBS, "n", changes),
        *updated(JOBS, "n", STATUSES_OF_JOBS, "/status"),
    ]


# CronJobs

CRON: Body = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "n"},
    "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}},
}
IN_JOB = "spec.jobTemplate.spec"
OF_CRON_JOBS: list[Change] = [
    *each("metadata.name", "a" * 52, "a" * 53, "a.b", "a" * 40 + "." + "b" * 12),
    *each(
        "spec.schedule", "TZ=UTC 0 * * * *", "CRON_TZ=UTC 0 * * * *", "@hourly", "61 * * * *", "0 TZ * * *"
    ),
    *each("spec.timeZone", "UTC", "Nowhere", ""),
    *each("spec.startingDeadlineSeconds", -1, 0),
    *each("spec.concurrencyPolicy", "", "Odd"),
    {f"{IN_JOB}.manualSelector": True},
    {f"{IN_JOB}.selector": {"matchLabels": {"a": "b"}}},
    *each(f"{IN_JOB}.completionMode", "Indexed"),
    *each(f"{IN_JOB}.completions", 2),
    *each(f"{IN_JOB}.backoffLimitPerIndex", 1),
    *each(f"{IN_JOB}.successPolicy.rules", [{"succeededIndexes": "0-1"}], [{"succeededCount": 3}]),
    *each(f"{IN_JOB}.podFailurePolicy.rules", FAILING),
    *each(f"{IN_JOB}.template.spec.restartPolicy", "OnFailure"),
    *each("spec.suspend", True),
    *each("spec.jobTemplate.metadata.labels", {"a": "b"}, {"a": "-"}),
]
SCHEDULES = (
    "0 0 1 1 *",
    "0 0 1 1 ?",
    "? ? ? ? ?",
    "*/5,1-3/2 * * * *",
    "0 0 * * SUN",
    "0 0 * * sunday",
    "0 0 * * 0-6",
    "0 0 * * 1-7",
    "0 0 * * fri-mon",
    "0 0 * jan *",
    "0 0 * 0 *",
    "0 0 0 * *",
    "0 0 31 2 *",
    "0 0 30 FEB ?",
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@midnight",
    "@HOURLY",
    "@hourly ",
    " @hourly",
    "@every 1s",
    "@every 0s",
    "@every 1ms",
    "@every 1d",
    "@every 1h 2m",
    "  0 0 * * *  ",
    "0  0\t* * *",
    "0\n0 * * *",
    "0 0 * * *\u00a0",
    "TZ=",
    "TZ=UTC",
    "TZ= 0 0 * * *",
    "tz=UTC 0 0 * * *",
    "TZ=UTC @hourly",
    "CRON_TZ=UTC\t0 0 * * *",
    "TZ=Local 0 0 * * *",
    "0 0 * * TZ=UTC",
    "0/0 * * * *",
    "*/60 * * * *",
    "0-59/61 * * * *",
    "59-0 * * * *",
    "00 00 * * *",
    "0x1 * * * *",
    "1e1 * * * *",
    "* * * * */8",
    "*/-1 * * * *",
    "1--2 * * * *",
    "- * * * *",
    "/ * * * *",
    "*/ * * * *",
    ",,, * * * *",
    "\u0661 * * * *",
    "* * * * *,",
    "*,* * * * *",
    "*-* * * * *",
    "@every 9999999999999h",
    "@every 1h-1m",
    "0 0 L * *",
    "0 0 1W * *",
    "0 0 * * 5#2",
    "H * * * *",
    "0 0 0 0 0 0",
    "0 0 * * mon,tue,wed-fri/2",
)
CHANGES_OF_CRON_JOBS: list[Change] = [
    {},
    *each(
        "spec.schedule",
        "@daily",
        "TZ=UTC @daily",
        "CRON_TZ=Asia/Tokyo 0 1 * * *",
        "TZ=No 0 1 * * *",
        GONE,
        "",
    ),
    *each("spec.timeZone", "Asia/Tokyo", "", "LOCAL", GONE),
    {"spec.schedule": "TZ=UTC @daily", "spec.timeZone": "UTC"},
    {"spec.schedule": "@daily", "spec.timeZone": "UTC"},
    *each("spec.suspend", True, GONE),
    *each("spec.startingDeadlineSeconds", 0, -2, GONE),
    *each("spec.concurrencyPolicy", "Replace", "Odd", GONE),
    *each("spec.successfulJobsHistoryLimit", 0, -1, GONE),
    *each(f"{IN_JOB}.template.spec.containers", [{"name": "z", "image": "i"}], []),
    *each(f"{IN_JOB}.completionMode", "Indexed", "Odd"),
    {f"{IN_JOB}.completionMode": "Indexed", f"{IN_JOB}.completions": 3, f"{IN_JOB}.backoffLimitPerIndex": 2},
    *each(f"{IN_JOB}.manualSelector", True, False),
    *each(f"{IN_JOB}.selector", {}, {"matchLabels": {"a": "b"}}),
    *each(f"{IN_JOB}.managedBy", "a.test/b", "b"),
    *each("spec.jobTemplate.metadata", {"labels": {"a": "b"}, "name": "X_"}, {"labels": {"a": "-"}}),
    *each("metadata.labels", {"a": "b"}, {"a": "-"}),
    *each("status", {"lastScheduleTime": NOON}),
]
STATUSES_OF_CRON_JOBS: list[Change] = [
    *each("status.active", [{"name": "x"}], [{}], [{"name": "X_", "kind": "Odd", "uid": "1"}] * 2, []),
    *each("status.lastScheduleTime", EARLY, LATER, GONE, "2126-01-01T00:00:00Z"),
    *each("status.lastSuccessfulTime", EARLY, LATER, GONE),
    {"spec.suspend": True, "status.lastScheduleTime": NOON, "metadata.labels": {"a": "b"}},
    *each("metadata.finalizers", ["odd"], ["a.b/c"]),
]


def panics(change: Change) -> bool:
    """Kubernetes does where nobody says how many indexes there are of which some are enough."""
    return f"{IN_JOB}.completionMode" in change and f"{IN_JOB}.successPolicy.rules" in change


def of_cron_jobs() -> list[Ask]:
    zoned = made(CRON, {"metadata.name": "zoned", "spec.timeZone": "Europe/Berlin"})
    return [
        *created(CRON_JOBS, CRON, (one for one in pairs(OF_CRON_JOBS) if not panics(one))),
        *created(CRON_JOBS, CRON, each("spec.schedule", *SCHEDULES)),
        *kept(CRON_JOBS, CRON, {"active": [{"name": "j"}], "lastScheduleTime": NOON}),
        *kept(CRON_JOBS, zoned),
        *(ask for name in ("n", "zoned") for ask in updated(CRON_JOBS, name, CHANGES_OF_CRON_JOBS)),
        *updated(CRON_JOBS, "n", STATUSES_OF_CRON_JOBS, "/status"),
    ]


# Kinds whose pods run for ever

LABELS = {"app": "a"}
LASTING: Body = {"containers": [{"name": "c", "image": "i"}]}


def workload(kind: str, version: str = "apps/v1", **spec: Any) -> Body:
    body = {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": LASTING},
        **spec,
    }
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "n"}, "spec": body}


TEMPLATE: Body = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "n"},
    "template": {"metadata": {"labels": LABELS}, "spec": LASTING},
}
AMOUNTS = (
    0,
    1,
    3,
    "0%",
    "00%",
    "1%",
    "100%",
    "101%",
    "%",
    "5",
    "-1%",
    "1.5%",
    "+5%",
    " 5%",
    -1,
    "9" * 30 + "%",
)
SPREADS: list[Body] = [
    {"matchLabelKeys": ["pod-template-hash"]},
    {"matchLabelKeys": ["app"], "labelSelector": {"matchLabels": LABELS}},
    {"matchLabelKeys": ["b"], "labelSelector": {"matchLabels": LABELS}},
    {"matchLabelKeys": ["b", "b"], "labelSelector": {"matchLabels": LABELS}},
    {"minDomains": 0},
    {"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"},
    {"labelSelector": {}},
    {"nodeAffinityPolicy": "Odd", "nodeTaintsPolicy": ""},
    {"topologyKey": "failure-domain.beta.kubernetes.io/zone"},
]
OF_TEMPLATE: list[Change] = [
    *each(f"{IN_META}.labels", {"app": "b"}, {"app": "a", "more": "l"}, GONE),
    *each(f"{IN_META}.annotations", {"a": "b"}, {"a b": "c"}),
    *each(f"{IN_META}.name", "X_"),
    *each(f"{IN_META}.namespace", "X_"),
    *each(f"{IN_META}.finalizers", ["odd"]),
    *each(f"{IN_POD}.restartPolicy", "Always", "OnFailure", "", GONE),
    *each(f"{IN_POD}.activeDeadlineSeconds", 0, 5),
    *each(f"{IN_POD}.nodeName", "x", "X_"),
    *each(f"{IN_POD}.priority", 5),
    *each(f"{IN_POD}.priorityClassName", "nobody", "X_"),
    *each(f"{IN_POD}.serviceAccount", "x"),
    *each(f"{IN_POD}.serviceAccountName", "x", "X_"),
    {f"{IN_POD}.serviceAccount": "x", f"{IN_POD}.serviceAccountName": "y"},
    *each(f"{IN_POD}.schedulingGates", [{"name": "a.b/c"}], [{"name": "c"}]),
    *each(f"{IN_POD}.hostNetwork", True),
    *each(
        f"{IN_POD}.initContainers",
        [{"name": "c", "image": "i"}],
        [{"name": "d", "image": "i", "restartPolicy": "Always"}],
        [{"name": "d", "image": "i", "restartPolicy": "Never"}],
    ),
    *each(
        f"{IN_POD}.nodeSelector",
        {"beta.kubernetes.io/arch": "x"},
        {"failure-domain.beta.kubernetes.io/zone": "z"},
        {"beta.kubernetes.io/instance-type": "x"},
    ),
    *each(
        f"{IN_POD}.topologySpreadConstraints",
        *(
            [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **more}]
            for more in SPREADS
        ),
    ),
    *each(
        f"{IN_POD}.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        *(
            [{"topologyKey": "z", "labelSelector": {"matchLabels": LABELS}, **more}]
            for more in (
                {},
                {"matchLabelKeys": ["x"], "mismatchLabelKeys": ["y"]},
                {"matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]},
                {"matchLabelKeys": ["app"]},
                {"matchLabelKeys": ["x"], "labelSelector": None},
                {"topologyKey": ""},
            )
        ),
    ),
    *each(f"{IN_POD}.imagePullSecrets", [{"name": ""}], [{"name": "a"}, {"name": "a"}]),
    *each(
        f"{IN_POD}.hostAliases",
        [{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}],
        [{"ip": "01.2.3.4", "hostnames": ["a"]}],
    ),
    *each(
        f"{IN_POD}.volumes",
        [{"name": "v", "emptyDir": {"sizeLimit": "1500m"}}],
        [{"name": "v", "gitRepo": {"repository": "r"}}],
        [
            {"name": "v", "glusterfs": {"endpoints": "e", "path": "p"}},
            {"name": "w", "cephfs": {"monitors": ["m"]}},
        ],
        [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}],
        [{"name": "v", "hostPath": {"path": "/"}}] * 2,
    ),
    *each(
        f"{IN_POD}.containers",
        *(
            [{"name": "c", "image": "i", **more}]
            for more in (
                {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
                {
                    "env": [
                        {"name": "A", "value": "1"},
                        {"name": "B", "value": "1"},
                        {"name": "A", "value": "$(A)x"},
                    ]
                },
                {"env": [{"name": "A=", "value": "1"}]},
                {"ports": [{"containerPort": 80}, {"containerPort": 80}]},
                {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]},
                {
                    "ports": [
                        {"containerPort": 80, "protocol": "UDP"},
                        {"containerPort": 80, "protocol": "TCP"},
                    ]
                },
                {"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
                {
                    "resources": {
                        "requests": {"memory": "1500m", "ephemeral-storage": "1m"},
                        "limits": {"memory": "1.5"},
                    }
                },
                {"livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 0}},
                {"readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 3}},
                {"terminationMessagePolicy": "Odd"},
                {"imagePullPolicy": ""},
                {"image": ""},
                {"image": " i"},
            )
        ),
    ),
    *each(
        f"{IN_POD}.securityContext",
        {"runAsUser": -1},
        {"seccompProfile": {"type": "Localhost"}},
        {"windowsOptions": {"hostProcess": True}},
    ),
    *each(f"{IN_POD}.os", {"name": "windows"}, {"name": "odd"}),
    *each(f"{IN_POD}.runtimeClassName", "nobody", "X_"),
    *each(f"{IN_POD}.overhead", {"cpu": "1"}),
    *each(f"{IN_POD}.dnsPolicy", "None", "ClusterFirstWithHostNet"),
    *each(f"{IN_POD}.terminationGracePeriodSeconds", -1, 0),
    {
        f"{IN_META}.annotations": {
            "seccomp.security.alpha.kubernetes.io/pod": "localhost/x",
            "container.seccomp.security.alpha.kubernetes.io/c": "unconfined",
        }
    },
    *each(
        f"{IN_META}.annotations",
        {"scheduler.alpha.kubernetes.io/critical-pod": ""},
        {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"},
        {"container.apparmor.security.beta.kubernetes.io/z": "unconfined"},
        {"kubernetes.io/config.mirror": "x"},
        {"scheduler.alpha.kubernetes.io/preferAvoidPods": "x"},
    ),
]
SELECTORS: list[Change] = each(
    "spec.selector",
    {},
    {"matchLabels": {}},
    {"matchLabels": {"app": "b"}},
    {"matchLabels": {"app": "-"}},
    {"matchLabels": LABELS, "matchExpressions": []},
    *(
        {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}
        for operator in ("In", "NotIn", "Exists", "DoesNotExist", "Odd")
        for values in ([], ["a"], ["b"], ["a", "a"], ["-"])
    ),
    {"matchLabels": LABELS, "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]},
    {"matchExpressions": [{"key": "-", "operator": "Exists"}]},
    GONE,
)
METADATA: list[Change] = [
    {},
    *each("metadata.labels", {"a": "b"}, {"a": "-"}),
    *each("metadata.annotations", {"a": "b"}, {"deprecated.daemonset.template.generation": "9"}),
    *each("metadata.annotations", {"deployment.kubernetes.io/revision": "9"}),
    *each(
        "metadata.annotations",
        *(
            {"deprecated.daemonset.template.generation": value}
            for value in ("x", "", "-3", "0", "+5", "05", "0x5", "1.5", "9" * 18, "9" * 20, " 5")
        ),
    ),
    *each("metadata.generation", 9),
    *each("metadata.finalizers", ["a.b/c"], ["odd"]),
    *each("metadata.generateName", "X_"),
    *each("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}], [{}]),
    *each("spec.replicas", 0, 3, -1, GONE),
    *each("spec.minReadySeconds", 1, -1, GONE),
    *each("spec.revisionHistoryLimit", 0, -1, GONE),
    {"spec.replicas": 2, f"{IN_META}.labels": {"app": "a", "more": "l"}},
    *each("spec", GONE),
    *each("status", {"replicas": 3, "observedGeneration": 4}),
]


def strategies(path: str) -> list[Change]:
    return [
        *(
            {f"{path}.rollingUpdate": {"maxUnavailable": least, "maxSurge": most}}
            for least in AMOUNTS
            for most in (0, 1, "0%", "10%", -1, "x")
        ),
        *each(path, {"type": "Recreate"}, {"type": "OnDelete"}, {"type": ""}, {"type": "rollingupdate"}),
        *each(path, {"type": "RollingUpdate", "rollingUpdate": None}, {"rollingUpdate": {"maxSurge": "5"}}),
        *(
            {path: {"type": type_, "rollingUpdate": rolling}}
            for type_ in ("Recreate", "OnDelete", "Odd")
            for rolling in ({}, {"maxSurge": 1}, {"maxUnavailable": "101%"}, {"partition": 2})
        ),
        *each(f"{path}.rollingUpdate", *({"partition": value} for value in (0, 1, -1, 5))),
    ]


OF_STATEFUL_SETS: list[Change] = [
    *each("spec.serviceName", "", "X_", "a.b", GONE),
    *each("spec.podManagementPolicy", "Parallel", "", "Odd"),
    *each("spec.ordinals", {}, {"start": 0}, {"start": 5}, {"start": -1}),
    *(
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}
        for deleted in ("Retain", "Delete", "", "Odd")
        for scaled in ("Retain", "Delete", "Odd")
    ),
    *each("spec.persistentVolumeClaimRetentionPolicy", {}, GONE),
    *each("metadata.name", "a.b", "a" * 63, "a" * 64, "A"),
    *each(
        "spec.volumeClaimTemplates",
        *(
            [
                {
                    "metadata": {"name": "v", **meta},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        **more,
                    },
                }
            ]
            for meta, more in (
                ({}, {}),
                ({"labels": {"a": "b"}}, {}),
                ({"labels": {"a": "-"}}, {}),
                ({"namespace": "x"}, {}),
                (
                    {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}},
                    {"storageClassName": "y"},
                ),
                ({}, {"accessModes": []}),
                ({}, {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}),
                ({}, {"resources": {}}),
                ({}, {"resources": {"requests": {"storage": "0"}}}),
                ({}, {"resources": {"requests": {"storage": "1500m"}}}),
                ({}, {"storageClassName": ""}),
                ({}, {"volumeMode": "Odd"}),
                ({}, {"volumeName": "x"}),
                ({}, {"selector": {"matchLabels": {"a": "-"}}}),
                ({}, {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}),
                ({}, {"dataSourceRef": {"kind": "K", "name": "x", "namespace": "o"}}),
                ({}, {"volumeAttributesClassName": "x"}),
            )
        ),
    ),
]
REPLICATED: list[Change] = [
    *each("spec.replicas", 0, 2, -1),
    *each("spec.minReadySeconds", 1, -1),
    *each("spec.revisionHistoryLimit", 0, -1),
]
DEADLINES: list[Change] = [
    {"spec.progressDeadlineSeconds": deadline, "spec.minReadySeconds": least}
    for deadline in (-1, 0, 1, 5, 600, 2_147_483_647)
    for least in (-1, 0, 1, 5, 600)
]
OF_DEPLOYMENTS: list[Change] = [
    *DEADLINES,
    *each("spec.paused", True),
    *each("spec.progressDeadlineSeconds", GONE),
    {"spec.minReadySeconds": 600},
    {"spec.minReadySeconds": 599},
]
COUNTS = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "currentReplicas",
    "fullyLabeledReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
)
OF_NODES = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
)
STATUSES: list[Change] = [
    *(
        {f"status.{one}": 2, f"status.{other}": count}
        for one, other in itertools.combinations(COUNTS, 2)
        for count in (1, 2, 3)
    ),
    *each("status", *({name: count} for name in (*COUNTS, *OF_NODES) for count in (0, 1, -1, None))),
    *each("status.observedGeneration", 0, 1, 99, -1, GONE),
    *each("status.collisionCount", 0, 1, 2, -1, GONE),
    *each("status.currentRevision", "x"),
    *each("status.conditions", [], [{}], [{"type": "A", "status": "Odd"}], conditions(A="True") * 2),
    {"status.replicas": -1, "status.readyReplicas": -2, "status.availableReplicas": -1},
    {
        "status.replicas": 1,
        "status.readyReplicas": 2,
        "status.availableReplicas": 3,
        "status.updatedReplicas": 4,
    },
    {"spec.replicas": 7, f"{IN_META}.labels": {"app": "b"}, "status.replicas": 1},
    *each("metadata.labels", {"a": "b"}),
    *each("metadata.annotations", {"a": "b"}, {"deprecated.daemonset.template.generation": "9"}, GONE),
    *each("metadata.finalizers", ["a.b/c"], ["odd"]),
]
STATUS = {"replicas": 5, "readyReplicas": 3, "collisionCount": 1, "observedGeneration": 1}
COLLISIONS = {"collisionCount": 1, "observedGeneration": 1}
KINDS: dict[str, tuple[str, Body, list[Change], Body]] = {
    "deployments": (
        DEPLOYMENTS,
        workload("Deployment"),
        [*SELECTORS, *REPLICATED, *OF_DEPLOYMENTS, *strategies("spec.strategy")],
        STATUS,
    ),
    "replicasets": (REPLICA_SETS, workload("ReplicaSet"), [*SELECTORS, *REPLICATED], STATUS),
    "daemonsets": (
        DAEMON_SETS,
        workload("DaemonSet"),
        [*SELECTORS, *REPLICATED, *strategies("spec.updateStrategy")],
        COLLISIONS,
    ),
    "statefulsets": (
        STATEFUL_SETS,
        workload("StatefulSet", serviceName="s"),
        [*SELECTORS, *REPLICATED, *OF_STATEFUL_SETS, *strategies("spec.updateStrategy")],
        STATUS,
    ),
    "replicationcontrollers": (
        CONTROLLERS,
        workload("ReplicationController", "v1", selector=LABELS),
        [
            *each(
                "spec.selector", {}, {"app": "b"}, {"app": "-"}, {"-": "a"}, {"app": "a", "more": "l"}, GONE
            ),
            *REPLICATED,
            *each("spec.template", GONE),
            {"spec.template": GONE, "spec.selector": GONE},
        ],
        {"replicas": 5, "readyReplicas": 3, "observedGeneration": 1},
    ),
}


FRACTIONS: list[Body] = [
    {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1500m"}, "limits": {"storage": "2500m"}},
        },
    }
    for name in "ab"
]
WARNED: Body = {
    "hostNetwork": True,
    "serviceAccount": "x",
    "nodeSelector": {"beta.kubernetes.io/arch": "x"},
    "imagePullSecrets": [{"name": ""}],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}],
    "terminationGracePeriodSeconds": -1,
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    "volumes": [
        {"name": "v", "gitRepo": {"repository": "r"}},
        {"name": "w", "emptyDir": {"sizeLimit": "1500m"}},
    ],
    "containers": [
        {
            "name": "c",
            "image": "i",
            "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            "ports": [{"containerPort": 80}, {"containerPort": 80}],
            "resources": {"requests": {"memory": "1500m"}},
        }
    ],
}
CHANGES_OF_WARNED: list[Change] = [
    {},
    *each("metadata.labels", {"a": "b"}),
    *each("metadata.annotations", {"a": "b"}),
    *each("metadata.finalizers", ["a.b/c"]),
    *each("spec.replicas", 1, 5),
    *each("spec.minReadySeconds", 5),
    *each("spec.suspend", True),
    *each("spec.schedule", "@daily"),
    *each("spec.revisionHistoryLimit", -1),
    *each("metadata.labels", {"a": "-"}),
]


def warned(target: str, base: Body, path: str) -> list[Ask]:
    """Changes of what is warned of when it is made."""
    policy = {"restartPolicy": "Never"} if target in (JOBS, CRON_JOBS) else {}
    old, image = changed(base, path, {**WARNED, **policy}), f"{path}.containers"
    containers = [{**WARNED["containers"][0], "image": "j"}]
    plain = {**WARNED["containers"][0], "env": [], "ports": [], "resources": {}}
    again: list[Change] = [
        {image: containers},
        {image: [plain]},
        {f"{path}.nodeSelector": GONE},
        {f"{path}.nodeSelector": {"beta.kubernetes.io/arch": None, "beta.kubernetes.io/os": "x"}},
        {f"{path}.volumes": GONE},
    ]
    place = f"{target}/{base['metadata']['name']}"
    return [
        *kept(target, old),
        *updated(target, base["metadata"]["name"], [*CHANGES_OF_WARNED, *again]),
        Ask("PUT", f"{place}{DRY}", old),
        Ask("PATCH", f"{place}/status{DRY}", {"status": {"observedGeneration": 1}}, MERGE),
        Ask("PATCH", f"{place}/scale{DRY}", {"spec": {"replicas": 4}}, MERGE),
        Ask(
            "PATCH",
            f"{place}{DRY}&fieldManager=m",
            {**old, "metadata": {"name": base["metadata"]["name"], "labels": {"c": "d"}}},
            {"Content_Type": APPLY},
        ),
    ]


def of_kind(name: str) -> list[Compared]:
    target, base, own, status = KINDS[name]
    named = changed(base, "metadata.name", "kept")
    asked = [
        *kept(target, named, status),
        *updated(target, "kept", [*METADATA, *own, *OF_TEMPLATE]),
        Ask("GET", f"{target}/kept"),
    ]
    return [
        Compared(f"{name} created", created(target, base, [*METADATA, *own, *OF_TEMPLATE])),
        Compared(f"{name} changed", asked),
        Compared(
            f"{name} status", [*kept(target, named, status), *updated(target, "kept", STATUSES, "/status")]
        ),
    ]


# Scales, templates, revisions

SCALES: list[Body] = [{"spec": {"replicas": count}} for count in (0, 1, 4, -1, None, "3", 1.5, 1 << 31)] + [
    {},
    {"spec": None},
    {"spec": {"replicas": 2, "odd": 1}},
    {"odd": 1},
    {"status": {"replicas": 9, "selector": "x=y"}},
    {"metadata": {"name": "other"}},
    {"metadata": {"namespace": "other"}},
    {"metadata": {"uid": "x"}},
    {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}},
    {"metadata": {"resourceVersion": "x"}, "spec": {"replicas": 2}},
    {"metadata": {"labels": {"a": "-"}, "annotations": {"a b": "c"}}, "spec": {"replicas": 2}},
    {"metadata": {"labels": {"a": "b"}, "finalizers": ["x"]}, "spec": {"replicas": 2}},
    {"metadata": {"generation": -1, "creationTimestamp": None}},
    {"kind": "Deployment"},
    {"apiVersion": "apps/v1"},
    {"apiVersion": "autoscaling/v2", "kind": "Scale"},
]
OPERATIONS: list[list[Body]] = [
    [{"op": op, "path": path, "value": value}]
    for op in ("add", "replace", "test")
    for path in ("/spec/replicas", "/status/replicas", "/metadata/labels", "/odd")
    for value in (3, -1)
] + [
    [{"op": "remove", "path": path}]
    for path in ("/spec/replicas", "/spec", "/metadata/name", "/status", "/odd", "/kind")
]


APPLICATIONS: list[Body] = [{}, {"spec": {}}, {"spec": {"replicas": 1}}, {"spec": {"replicas": 4}}]
APPLIED: Body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "n"}}


def scaled(name: str) -> list[Ask]:
    target, base, _, status = KINDS[name]
    place = f"{target}/n/scale"
    asks = [
        Ask(
            method,
            f"{place}{DRY}{query}",
            {**own, **body},
            {"Content_Type": how} if how else {},
            f"{how} {body}",
        )
        for method, how, query, own in (
            ("PATCH", MERGE_PATCH, "", {}),
            ("PATCH", STRATEGIC_PATCH, "", {}),
            ("PATCH", APPLY, "&fieldManager=m&force=true", {"apiVersion": "autoscaling/v1", "kind": "Scale"}),
            ("PUT", "", "", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "n"}}),
        )
        for body in SCALES
    ]
    return [
        *kept(target, base, {key: value for key, value in status.items() if key != "collisionCount"}),
        *asks,
        *(
            Ask(
                "PATCH",
                f"{place}{DRY}&fieldManager=m",
                {**APPLIED, **body},
                {"Content_Type": APPLY},
                str(body),
            )
            for body in APPLICATIONS
        ),
        *(Ask("PATCH", f"{place}{DRY}", one, {"Content_Type": JSON_PATCH}, str(one)) for one in OPERATIONS),
        *(
            Ask(
                "PATCH",
                f"{place}?fieldManager={who}&force=true",
                {**APPLIED, **body},
                {"Content_Type": APPLY},
                who,
            )
            for who, body in (
                ("m", {}),
                ("m", {"spec": {"replicas": 3}}),
                ("o", {"spec": {"replicas": 4}}),
                ("o", {}),
                ("m", {"spec": {"replicas": 4}}),
                ("o", {"spec": {"replicas": 4}}),
                ("o", {}),
            )
        ),
        Ask("GET", f"{target}/n"),
        Ask("PATCH", f"{place}?fieldManager=m", {"spec": {"replicas": 7}}, MERGE),
        Ask("GET", f"{target}/n"),
        Ask("GET", place),
    ]


def of_templates() -> list[Ask]:
    changes = [
        {key.removeprefix("spec."): value for key, value in one.items()}
        for one in OF_TEMPLATE
        if all(key.startswith(("spec.template", "metadata")) for key in one)
    ]
    return [
        *created(
            TEMPLATES, TEMPLATE, [*changes, *each("template", {}, GONE), *each("template.spec", {}, GONE)]
        ),
        *kept(TEMPLATES, changed(TEMPLATE, "metadata.name", "kept")),
        *updated(
            TEMPLATES, "kept", [*changes, *each("template", {}, GONE), *each("template.spec", {}, GONE)]
        ),
    ]


def of_revisions() -> list[Ask]:
    base: Body = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "n"},
        "data": {"a": [1, {"b": 2}], "c": 1},
        "revision": 3,
    }
    changes: list[Change] = [
        {},
        *each(
            "data",
            {},
            {"a": [1, {"b": 2}], "c": 1},
            {"c": 1},
            [],
            "x",
            1,
            None,
            GONE,
            {"apiVersion": "v1", "kind": "X"},
        ),
        *each("data.a", [1, {"b": None}], [1, {"b": 2.0}], [None]),
        *each("data.c", 1, 1.0, 2),
        *each("revision", 0, 2, 9, -1, GONE, 1 << 40, "4"),
        {"revision": 4, "data": {}},
        *each("metadata.labels", {"a": "b"}, {"a": "-"}),
        *each("metadata.generation", 4),
    ]
    place = f"{REVISIONS}/n{DRY}"
    return [
        *created(REVISIONS, base, changes),
        *kept(REVISIONS, base),
        *updated(REVISIONS, "n", changes),
        *(Ask("PUT", place, made(base, one), what=str(dict(one))) for one in changes),
        # Kubernetes looks into data for fields of a type, and spells its numbers anew.
        *(
            Ask("PATCH", place, patch(one), STRATEGIC, str(dict(one)))
            for one in changes
            if "data" not in str(one)
        ),
    ]


# Budgets, quotas, limits, leases

V1 = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
QUOTAS, RANGES = f"{CORE}/resourcequotas", f"{CORE}/limitranges"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
PRIORITIES, RUNTIMES = "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/node.k8s.io/v1/runtimeclasses"
BUDGET: Body = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "n"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
}
CHANGES_OF_BUDGETS: list[Change] = [
    {},
    *(
        {"spec.minAvailable": least, "spec.maxUnavailable": most}
        for least in (GONE, 0, 1, -1, "0%", "50%", "101%", "x")
        for most in (GONE, 0, 2, -1, "100%", "100", "")
    ),
    *each("spec.unhealthyPodEvictionPolicy", "AlwaysAllow", "IfHealthyBudget", "", "Odd", GONE),
    *SELECTORS,
    *each("metadata.name", "A", "a.b", "a" * 253),
    *each("metadata.labels", {"a": "b"}, {"a": "-"}),
    *each("metadata.finalizers", ["odd"], ["a.b/c"]),
    {"spec": GONE},
    {"status.disruptionsAllowed": 4},
]
CONDITION: Body = {
    "type": "DisruptionAllowed",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": NOON,
    "observedGeneration": 1,
}
STATUSES_OF_BUDGETS: list[Change] = [
    {},
    *(
        {f"status.{name}": count}
        for name in (
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
            "observedGeneration",
        )
        for count in (0, 3, -1, GONE)
    ),
    *each("status.disruptedPods", {"p": NOON}, {"P_": NOON}, {"p": "x"}, {"p": None}, GONE),
    *each(
        "status.conditions",
        *(
            [{**CONDITION, **more}]
            for more in (
                {},
                {"type": ""},
                {"type": "A B"},
                {"status": ""},
                {"status": "odd"},
                {"reason": ""},
                {"reason": "a-b"},
                {"lastTransitionTime": None},
                {"observedGeneration": -1},
                {"message": "m" * 33000},
                {"reason": "R" * 1025},
            )
        ),
        [CONDITION, CONDITION],
    ),
    {"spec.minAvailable": 7, "metadata.labels": {"a": "b"}, "status.currentHealthy": 1},
]


def of_budgets() -> list[Ask]:
    version = {"metadata.resourceVersion": "$0.metadata.resourceVersion"}
    return [
        *kept(BUDGETS, changed(BUDGET, "metadata.name", "kept"), {"disruptionsAllowed": 1}),
        *created(BUDGETS, BUDGET, CHANGES_OF_BUDGETS),
        *updated(BUDGETS, "kept", CHANGES_OF_BUDGETS),
        *updated(BUDGETS, "kept", STATUSES_OF_BUDGETS, "/status"),
        *(
            Ask("PUT", f"{BUDGETS}/kept{part}{DRY}", made(changed(BUDGET, "metadata.name", "kept"), more))
            for part in ("", "/status")
            for more in ({}, version, {"metadata.resourceVersion": "0"}, {"spec.minAvailable": 5})
        ),
    ]


SCOPES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
    "Odd",
    "",
)
COUNTED = (
    "pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "requests.storage",
    "persistentvolumeclaims",
    "services",
    "services.nodeports",
    "configmaps",
    "count/pods",
    "count/jobs.batch",
    "requests.example.com/gpu",
    "example.com/gpu",
    "limits.example.com/gpu",
    "hugepages-2Mi",
    "requests.hugepages-2Mi",
    "limits.hugepages-2Mi",
    "requests.nvidia.com/gpu",
    "storage",
    "x",
    "gold.storageclass.storage.k8s.io/requests.storage",
    "c.deviceclass.resource.k8s.io/devices",
    "a.volumeattributesclass.storage.k8s.io/persistentvolumeclaims",
)


def of_quotas() -> list[Ask]:
    base: Body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "n"},
        "spec": {"hard": {"pods": "1"}},
    }
    selected = [
        {"scopeName": scope, "operator": operator, "values": values}
        for scope in SCOPES
        for operator in ("Exists", "In", "NotIn", "DoesNotExist", "Odd")
        for values in ([], ["a"])
    ]
    changes: list[Change] = [
        *({"spec.hard": {name: "1"}, "spec.scopes": [scope]} for name in COUNTED for scope in SCOPES),
        *each(
            "spec.hard", *({name: amount} for name in COUNTED for amount in ("0", "-1", "1.5", "1m", "1Ki"))
        ),
        *each("spec.scopes", *(list(pair) for pair in itertools.product(SCOPES, SCOPES))),
        *each(
            "spec.scopeSelector",
            *({"matchExpressions": [one]} for one in selected),
            {},
            {"matchExpressions": []},
        ),
        *(
            {
                "spec.hard": {name: "1"},
                "spec.scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": "Exists"}]},
                **more,
            }
            for name in ("pods", "requests.storage", "count/pods", "limits.cpu")
            for scope in SCOPES
            for more in ({}, {"spec.scopes": ["Terminating"]})
        ),
        *each("metadata.name", "a.b", "A"),
    ]
    changed_spec: list[Change] = [
        {},
        *each("spec.hard", {"pods": "2"}, {"pods": None}, {"services": "2"}, GONE, {"x": "1"}),
        *each(
            "spec.scopes",
            ["Terminating"],
            ["Terminating", "PriorityClass"],
            ["PriorityClass", "Terminating"],
            ["BestEffort"],
        ),
        *each(
            "spec.scopeSelector",
            {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]},
            GONE,
        ),
        *each("status.hard", {"pods": "5"}),
        {"spec": GONE},
    ]
    statuses: list[Change] = [
        *each(
            "status.hard",
            *({name: amount} for name in ("pods", "x", "limits.cpu", "x/y") for amount in ("1", "-1", "1.5")),
            GONE,
        ),
        *each(
            "status.used",
            *({name: amount} for name in ("pods", "x", "limits.cpu", "x/y") for amount in ("1", "-1", "1.5")),
            GONE,
        ),
        {"spec.hard": {"pods": "9"}, "metadata.labels": {"a": "b"}, "status.used": {"pods": "1"}},
    ]
    scoped = made(base, {"metadata.name": "scoped", "spec.scopes": ["Terminating", "PriorityClass"]})
    return [
        *created(QUOTAS, base, changes),
        *kept(QUOTAS, scoped, {"hard": {"pods": "1"}, "used": {"pods": "0"}}),
        *updated(QUOTAS, "scoped", changed_spec),
        *updated(QUOTAS, "scoped", statuses, "/status"),
    ]


def of_ranges() -> list[Ask]:
    base: Body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "n"}, "spec": {}}
    bounds = ("min", "max", "default", "defaultRequest")
    items = [
        {
            "type": type_,
            **{bound: {name: amount} for bound, amount in zip(bounds, amounts, strict=True) if amount},
            **({"maxLimitRequestRatio": {name: ratio}} if ratio else {}),
        }
        for type_, name, ratios in (
            ("Container", "cpu", ("", "500m", "2", "4")),
            ("Container", "hugepages-2Mi", ("", "1", "2")),
            ("Container", "a.test/b", ("",)),
            ("Pod", "memory", ("", "1", "2500m")),
            ("PersistentVolumeClaim", "storage", ("", "3")),
            ("a.test/odd", "cpu", ("", "2")),
        )
        for amounts in itertools.product(("", "1", "3"), repeat=4)
        for ratio in ratios
    ]
    odd: list[Body] = [
        *(
            {"type": type_, "max": {"cpu": "1"}}
            for type_ in ("", "container", "Node", "a.test/", "/b", "a b", "a/b/c")
        ),
        *(
            {"type": type_, "max": {name: amount}}
            for type_ in ("Container", "Pod", "PersistentVolumeClaim", "a/b")
            for name in ("cpu", "storage", "pods", "x", "a/b", "requests.cpu", "kubernetes.io/x", "", "A B")
            for amount in ("1", "-1", "1m")
        ),
        {"type": "Container"},
        {"type": "PersistentVolumeClaim", "min": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim", "default": {"storage": "1"}},
        {"type": "Pod", "default": {}, "defaultRequest": {}},
        {"type": "Container", "maxLimitRequestRatio": {"x": "1"}},
        {"type": "Container", "min": {"cpu": "0"}, "max": {"cpu": "0"}, "maxLimitRequestRatio": {"cpu": "1"}},
        {
            "type": "Container",
            "min": {"cpu": "300m"},
            "max": {"cpu": "1"},
            "maxLimitRequestRatio": {"cpu": "4"},
        },
    ]
    lists: list[Any] = [
        *([one] for one in [*items[:324], *items[324::5], *odd]),
        [odd[-1]] * 2,
        [odd[-1], {"type": "Pod", "max": {"cpu": "1"}}, odd[-1]],
        None,
    ]
    return [
        *created(RANGES, base, each("spec.limits", *lists)),
        *kept(
            RANGES,
            made(base, {"metadata.name": "kept", "spec.limits": [{"type": "Pod", "max": {"cpu": "1"}}]}),
        ),
        *updated(RANGES, "kept", each("spec.limits", *lists[::40], [], GONE)),
    ]


LEASE: Body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n"}, "spec": {}}
IN_LEASES: list[Change] = [
    *each("spec.holderIdentity", "", "a", GONE),
    *each("spec.leaseDurationSeconds", 0, -1, 15, GONE),
    *each("spec.leaseTransitions", 0, -1, 3, GONE),
    *each("spec.acquireTime", "2026-01-01T12:00:00.123456Z", NOON, "x", "", GONE),
    *each("spec.renewTime", "2026-01-01T12:00:00.123456789Z", "2026-01-01T14:00:00+01:00", None),
    *each("spec.strategy", "OldestEmulationVersion", "Odd", "", "a.test/odd", "a/", GONE),
    *each("spec.preferredHolder", "", "b", GONE),
    {"spec": GONE},
]


def of_leases() -> list[Ask]:
    held = made(
        LEASE,
        {
            "metadata.name": "held",
            "spec.holderIdentity": "a",
            "spec.leaseDurationSeconds": 15,
            "spec.leaseTransitions": 2,
            "spec.acquireTime": "2026-01-01T12:00:00.000000Z",
        },
    )
    planned = made(
        LEASE,
        {
            "metadata.name": "planned",
            "spec.strategy": "OldestEmulationVersion",
            "spec.preferredHolder": "b",
            "spec.holderIdentity": "a",
        },
    )
    return [
        *created(LEASES, LEASE, [*IN_LEASES, *pairs(IN_LEASES[1::2])]),
        *kept(LEASES, LEASE),
        *kept(LEASES, held),
        *kept(LEASES, planned),
        *(ask for name in ("n", "held") for ask in updated(LEASES, name, IN_LEASES)),
        *updated(LEASES, "planned", pairs(IN_LEASES[::2])),
        Ask("PUT", f"{LEASES}/held{DRY}", changed(LEASE, "metadata.name", "held")),
        Ask("PUT", f"{LEASES}/fresh{DRY}", changed(LEASE, "metadata.name", "fresh")),
    ]


def of_classes() -> list[Ask]:
    priority: Body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "rules"},
        "value": 5,
    }
    priorities: list[Change] = [
        *each("value", 0, 5, 6, -1, 1_000_000_000, 1_000_000_001, 2_000_000_000, GONE, "5"),
        *each("globalDefault", False, GONE),
        *each("preemptionPolicy", "Never", "PreemptLowerPriority", "", "Odd", GONE),
        *each("description", "x", "", GONE),
        *each("metadata.labels", {"a": "b"}, {"a": "-"}),
        *each("metadata.generation", 0, 7),
    ]
    named = each("metadata.name", "system-x", "system-cluster-critical", "system-node-critical", "A", "a.b")
    runtime: Body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "rules"},
        "handler": "h",
    }
    runtimes: list[Change] = [
        *each("handler", "", "h", "i", "A", "a.b", "a" * 63, "a" * 64, GONE),
        *each(
            "overhead",
            {},
            {"podFixed": {}},
            *(
                {"podFixed": {name: amount}}
                for name in ("cpu", "x", "a/b", "hugepages-2Mi", "storage")
                for amount in ("1", "0", "-1", "1500m")
            ),
            GONE,
        ),
        *each(
            "scheduling",
            {},
            {"nodeSelector": {}},
            {"nodeSelector": {"a": "b"}},
            {"nodeSelector": {"a": "-"}},
            {"nodeSelector": {"-": "a"}},
            *(
                {"tolerations": [one]}
                for one in (
                    {},
                    {"operator": "Exists"},
                    {"key": "a"},
                    {"key": "-"},
                    {"key": "a", "operator": "Exists", "value": "b"},
                    {"key": "a", "operator": "Odd"},
                    {"key": "a", "effect": "Odd"},
                    {"key": "a", "tolerationSeconds": 3},
                    {"key": "a", "effect": "NoExecute", "tolerationSeconds": 3},
                    {"key": "a", "value": "-"},
                    {"key": "a", "operator": "Lt", "value": "5"},
                    {"operator": "Equal"},
                )
            ),
            {"tolerations": [{"key": "a"}, {"key": "a"}]},
            {"nodeSelector": {"beta.kubernetes.io/os": "x"}},
            GONE,
        ),
        *each("metadata.labels", {"a": "b"}, {"a": "-"}),
    ]
    asks = []
    for target, base, changes in ((PRIORITIES, priority, priorities), (RUNTIMES, runtime, runtimes)):
        asks += [
            *created(target, base, [*(pairs(changes) if base is priority else changes), *named]),
            *kept(target, base),
            *updated(target, "rules", pairs(changes) if base is priority else changes),
            *(Ask("PUT", f"{target}/rules{DRY}", made(base, one), what=str(dict(one))) for one in changes),
            Ask("DELETE", f"{target}/rules"),
        ]
    return asks


# Autoscalers

REFERENCE = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
SCALER: Body = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "n"},
    "spec": {"scaleTargetRef": REFERENCE, "maxReplicas": 5},
}
NAMED = {"name": "m", "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}
ALL_METRICS: list[Body] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}},
    },
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    },
    {"type": "Pods", "pods": {"metric": NAMED, "target": {"type": "AverageValue", "averageValue": "3"}}},
    {
        "type": "Object",
        "object": {"describedObject": REFERENCE, "metric": NAMED, "target": {"type": "Value", "value": "9"}},
    },
    {
        "type": "External",
        "external": {"metric": NAMED, "target": {"type": "AverageValue", "averageValue": "1500m"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 7},
        },
    },
]
POLICY = {"type": "Percent", "value": 10, "periodSeconds": 60}
RULES: list[Body] = [
    {},
    {"selectPolicy": "Disabled"},
    {"selectPolicy": "Min", "policies": [POLICY]},
    {"policies": [POLICY, {**POLICY, "type": "Pods"}], "stabilizationWindowSeconds": 0},
    {"policies": [POLICY, POLICY], "stabilizationWindowSeconds": 3600, "tolerance": "0"},
    {
        "policies": [{**POLICY, "value": -1, "periodSeconds": 0}],
        "stabilizationWindowSeconds": 3601,
        "selectPolicy": "",
    },
    {"tolerance": "1500m"},
    {"tolerance": "0.05", "policies": []},
    {"tolerance": "-1m", "selectPolicy": "odd"},
]
OF_SCALERS: list[Change] = [
    {},
    *(
        {"spec.minReplicas": least, "spec.maxReplicas": most}
        for least in (GONE, 0, 1, 5, 6, -1)
        for most in (0, 1, 5, -1)
    ),
    *({"spec.minReplicas": 0, "spec.metrics": [one]} for one in ALL_METRICS),
    *({"spec.behavior": {"scaleUp": up, "scaleDown": down}} for up in RULES for down in RULES),
    *({"spec.behavior": {"scaleUp": up}} for up in RULES),
    *({"spec.behavior": {"scaleDown": down}} for down in RULES),
    *({"spec.metrics": list(few)} for count in (1, 2) for few in itertools.permutations(ALL_METRICS, count)),
    {"spec.metrics": ALL_METRICS},
    {"spec.metrics": [], "spec.behavior": {}},
    *each(
        "spec.scaleTargetRef",
        {**REFERENCE, "name": "X_"},
        {**REFERENCE, "apiVersion": "v1"},
        {**REFERENCE, "kind": ""},
    ),
    *each("spec.scaleTargetRef.apiVersion", "v1", "apps", GONE),
    *(
        {"spec.scaleTargetRef": {"kind": kind, "name": "r", "apiVersion": version}}
        for kind in ("ReplicationController", "Pod", "replicationcontroller", "Deployment", "")
        for version in ("v1", "", "/v1", "v1/", "apps", "core/v1", "/", "a/b/c")
    ),
    *each("metadata.labels", {"a": "b"}, {"a": "-"}),
]
KEPT_IN = "autoscaling.alpha.kubernetes.io/"
OF_V1: list[Change] = [
    {},
    *each("spec.targetCPUUtilizationPercentage", 0, 1, 101, -1, GONE),
    *each("spec.minReplicas", 0, 2, 9, GONE),
    {"spec.targetCPUUtilizationPercentage": 5, "spec.maxReplicas": 9},
    *(
        {"metadata.annotations": {f"{KEPT_IN}{name}": text}}
        for name in ("metrics", "behavior", "conditions", "current-metrics")
        for text in (
            "[]",
            "{}",
            "null",
            "x",
            "",
            '[{"type":"Resource"}]',
            '{"scaleUp":{"selectPolicy":"Max"}}',
            '[{"type":"Resource","resource":{"name":"cpu","targetAverageUtilization":9}}]',
            '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":9}}]',
            '[{"type":"AbleToScale","status":"True","reason":"r","lastTransitionTime":null}]',
            '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"2"}}]',
        )
    ),
    *each("metadata.annotations", {"own": "a"}, GONE),
    *each("metadata.labels", {"a": "b"}),
]
LOADS: list[Body] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 30, "averageValue": "300m"}},
    },
    {"type": "Pods", "pods": {"metric": NAMED, "current": {"averageValue": "2"}}},
    {"type": "Object", "object": {"describedObject": REFERENCE, "metric": NAMED, "current": {"value": "8"}}},
    {"type": "External", "external": {"metric": NAMED, "current": {"averageValue": "1", "value": "3"}}},
    {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "c", "current": {"averageUtilization": 3}},
    },
]
STATUSES_OF_SCALERS: list[Change] = [
    *(
        {"status.currentMetrics": list(few)}
        for count in (1, 2, 5)
        for few in itertools.combinations(LOADS, count)
    ),
    *each("status.currentReplicas", 0, 3, -1, GONE),
    *each("status.desiredReplicas", 0, 3, -1, GONE),
    *each("status.observedGeneration", 0, 9, -1, GONE),
    *each("status.lastScaleTime", NOON, "x", GONE),
    *each(
        "status.conditions",
        conditions(AbleToScale="True"),
        conditions(A="odd"),
        [{}],
        conditions(A="True") * 2,
    ),
    {"spec.maxReplicas": 9, "metadata.labels": {"a": "b"}, "status.currentReplicas": 2},
]
STATES_OF_SCALERS: dict[str, Change] = {
    "plain": {},
    "cpu": {"spec.metrics": ALL_METRICS[:1]},
    "all": {
        "spec.metrics": ALL_METRICS,
        "spec.behavior": {"scaleUp": RULES[2], "scaleDown": RULES[4]},
        "metadata.annotations": {"own": "x"},
    },
}


def of_scalers(name: str) -> list[Ask]:
    base = made(SCALER, STATES_OF_SCALERS[name])
    status = {
        "currentMetrics": LOADS,
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "conditions": conditions(A="True"),
    }
    return [
        *kept(V2, base, status),
        *(Ask("GET", f"{version}/n") for version in (V1, V2)),
        *updated(V2, "n", OF_SCALERS[::3]),
        *updated(V1, "n", OF_V1),
        *updated(V2, "n", STATUSES_OF_SCALERS, "/status"),
        *updated(
            V1,
            "n",
            each("status", *({"currentCPUUtilizationPercentage": load} for load in (0, 5, -1, None))),
            "/status",
        ),
        *(
            Ask(
                "PUT",
                f"{V1}/n{DRY}",
                made({**SCALER, "apiVersion": "autoscaling/v1"}, one),
                what=str(dict(one)),
            )
            for one in OF_V1
        ),
        *(
            Ask("PATCH", f"{version}/n{DRY}", patch(one), STRATEGIC, str(dict(one)))
            for version, changes in ((V1, OF_V1), (V2, OF_SCALERS[::7]))
            for one in changes
        ),
    ]


# Events

CORE_EVENTS, EVENTS = f"{CORE}/events", "/apis/events.k8s.io/v1/namespaces/{ns}/events"
MOMENT, SOON = "2026-01-02T00:00:10.000000Z", "2026-01-02T00:00:11.000000Z"
EVENT: Body = {
    "metadata": {"name": "n"},
    "eventTime": MOMENT,
    "reportingController": "a.test/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "{ns}"},
    "note": "n",
    "type": "Normal",
}
OLD_EVENT: Body = {
    "metadata": {"name": "n"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"},
    "reason": "r",
    "message": "m",
    "type": "Normal",
    "count": 1,
    "firstTimestamp": NOON,
    "lastTimestamp": NOON,
    "source": {"component": "c"},
}
COMMON: list[Change] = [
    *each("eventTime", MOMENT, SOON, GONE),
    *each(
        "series",
        {},
        {"count": 1, "lastObservedTime": MOMENT},
        {"count": 2, "lastObservedTime": SOON},
        {"count": 3},
        GONE,
    ),
    *each("action", "", "b", "a" * 128, "a" * 129, GONE),
    *each("reason", "", "s", "a" * 129, GONE),
    *each("reportingInstance", "", "j", "a" * 129, GONE),
    *each("type", "Warning", "", "Odd", "normal", GONE),
    *each("related", {"kind": "Node", "name": "x"}),
    *each("metadata.name", "A_", "a/b", "n.1"),
    *each("metadata.labels", {"a": "b"}),
]
OF_EVENTS: list[Change] = [
    *COMMON,
    *each("reportingController", "", "b", "a b", "/x", GONE),
    *each(
        "regarding",
        {},
        {"kind": "Node", "name": "x"},
        {"kind": "Pod", "namespace": "other"},
        {"kind": "Pod", "name": "q", "namespace": "{ns}"},
        GONE,
    ),
    *each("note", "o", "n" * 1024, "n" * 1025, GONE),
    *each("deprecatedCount", 0, 1),
    *each("deprecatedFirstTimestamp", NOON),
    *each("deprecatedLastTimestamp", NOON),
    *each("deprecatedSource", {"component": "c"}),
]
OF_OLD_EVENTS: list[Change] = [
    *COMMON,
    *each("reportingComponent", "", "b", "a b", GONE),
    *each(
        "involvedObject",
        {},
        {"kind": "Node", "name": "x"},
        {"kind": "Pod", "namespace": "other"},
        {"kind": "Pod", "name": "q", "namespace": "{ns}"},
        GONE,
    ),
    *each("message", "o", "n" * 1025, GONE),
    *each("count", 0, 2, -1, GONE),
    *each("firstTimestamp", EARLY, GONE),
    *each("source", {"host": "h"}, GONE),
    {"eventTime": MOMENT, "reportingComponent": "a/b", "reportingInstance": "i", "action": "a"},
]


def of_events() -> list[Ask]:
    kinds = ((EVENTS, EVENT, OF_EVENTS), (CORE_EVENTS, OLD_EVENT, OF_OLD_EVENTS))
    return [
        *(
            ask
            for target, base, changes in kinds
            for ask in created(target, base, [*changes, *pairs(changes[1::3])])
        ),
        Ask("POST", EVENTS, made(EVENT, {"metadata.name": "new"})),
        Ask(
            "POST",
            EVENTS,
            made(EVENT, {"metadata.name": "many", "series": {"count": 2, "lastObservedTime": MOMENT}}),
        ),
        Ask("POST", CORE_EVENTS, made(OLD_EVENT, {"metadata.name": "old"})),
        *(
            ask
            for target, _, changes in kinds
            for name in ("new", "many", "old")
            for ask in updated(target, name, [one for one in changes if "metadata.name" not in one])
        ),
        *(
            Ask(
                "PUT",
                f"{target}/{name}{DRY}",
                made(base, {**one, "metadata.name": name}),
                what=str(dict(one)),
            )
            for target, base, changes in kinds
            for name in ("new", "old", "fresh")
            for one in changes[::2]
            if "metadata.name" not in one
        ),
    ]


# What priority and fairness goes by

FLOWS, LEVELS = (
    f"/apis/flowcontrol.apiserver.k8s.io/v1/{plural}"
    for plural in ("flowschemas", "prioritylevelconfigurations")
)
CHANGES_OF_FLOWS: list[Change] = [
    *each("spec.matchingPrecedence", 1, 2, 0, 10_000, 10_001, GONE),
    *each("spec.priorityLevelConfiguration.name", "exempt", "catch-all", "nobody", ""),
    *each("spec.distinguisherMethod", {"type": "ByUser"}, {"type": "Odd"}, GONE),
    *each(
        "spec.rules",
        [],
        [
            {
                "subjects": [{"kind": "Group", "group": {"name": "g"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }
        ],
    ),
    *each(
        "metadata.annotations",
        {"apf.kubernetes.io/autoupdate-spec": "false"},
        {"apf.kubernetes.io/autoupdate-spec": "odd"},
    ),
    *each("metadata.labels", {"a": "b"}),
    {"spec": GONE},
]
CHANGES_OF_LEVELS: list[Change] = [
    {},
    *each("spec.type", "Exempt", "Limited", "Odd", GONE),
    *each(
        "spec.exempt",
        {},
        {"nominalConcurrencyShares": 5},
        {"lendablePercent": 50},
        {"lendablePercent": 101},
        GONE,
    ),
    *each(
        "spec.limited",
        {},
        GONE,
        {"nominalConcurrencyShares": 0},
        {"borrowingLimitPercent": 5},
        {"lendablePercent": 3},
    ),
    *each(
        "spec.limited.limitResponse",
        {"type": "Queue"},
        {"type": "Reject"},
        {"type": "Reject", "queuing": {}},
        {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}},
    ),
    {"spec.type": "Limited", "spec.exempt": GONE, "spec.limited": {"limitResponse": {"type": "Reject"}}},
    {"spec.type": "Exempt", "spec.limited": GONE, "spec.exempt": {}},
    *each("metadata.labels", {"a": "b"}),
    {"spec": GONE},
]


def of_flows() -> list[Ask]:
    """Those that are there from the start, some of which may not change."""
    return [
        ask
        for target, names, changes in (
            (FLOWS, ("exempt", "catch-all", "probes", "global-default"), CHANGES_OF_FLOWS),
            (LEVELS, ("exempt", "catch-all", "leader-election", "workload-low"), CHANGES_OF_LEVELS),
        )
        for name in names
        for ask in (
            Ask("GET", f"{target}/{name}", until="Dangling" if target == FLOWS else 200),
            *updated(target, name, changes),
            Ask("DELETE", f"{target}/{name}{DRY}"),
        )
    ]


# Apply


def applied(name: str) -> list[Ask]:
    """Of two managers, each with its own part."""
    target, base, _, _ = KINDS[name]
    place = f"{target}/n"

    def ask(who: str, spec: Body | None, query: str = "", **meta: Any) -> Ask:
        body = {"apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": {"name": "n", **meta}}
        sent = body if spec is None else {**body, "spec": spec}
        return Ask(
            "PATCH", f"{place}?fieldManager={who}{query}", sent, {"Content_Type": APPLY}, f"{who} {spec}"
        )

    whole = base["spec"]
    other = {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}
    more = {
        "template": {"spec": {"containers": [{"name": "d", "image": "i", "ports": [{"containerPort": 1}]}]}}
    }
    wrong = {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]}}}
    return [
        ask("a", {}),
        ask("a", whole),
        ask("a", whole),
        ask("b", {"replicas": 3}),
        ask("b", other),
        ask("b", other, "&force=true"),
        ask("b", more),
        ask("c", wrong),
        ask("c", {"template": {"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}}),
        ask("c", {"template": {"spec": {"containers": [{"image": "c"}]}}}),
        ask("c", {"minReadySeconds": -1}),
        ask("c", {"selector": {"matchLabels": {"app": "z"}}}, "&force=true"),
        ask("c", {"odd": 1}),
        ask("c", {"odd": 1}, "&fieldValidation=Ignore"),
        ask("c", None, annotations={"deprecated.daemonset.template.generation": "9"}),
        ask(
            "a",
            {
                **whole,
                "template": {**whole["template"], "spec": {"containers": [{"name": "e", "image": "i"}]}},
            },
        ),
        ask("b", {}),
        ask("a", {}),
        ask("a", None, "&force=true", labels={"a": "b"}),
        ask("c", None),
        Ask("GET", place),
        Ask(
            "PATCH",
            f"{place}/status?fieldManager=s",
            {"apiVersion": base["apiVersion"], "kind": base["kind"], "status": {"observedGeneration": 2}},
            {"Content_Type": APPLY},
        ),
        Ask(
            "PATCH",
            f"{place}/status?fieldManager=s",
            {
                "apiVersion": base["apiVersion"],
                "kind": base["kind"],
                "status": {},
                "spec": {"minReadySeconds": 5},
            },
            {"Content_Type": APPLY},
        ),
        Ask("GET", place),
    ]


SEQUENCES = [
    Compared("jobs pairs", created(JOBS, JOB, pairs(OF_JOBS))),
    Compared("jobs indexed pairs", created(JOBS, made(JOB, INDEXED), pairs(OF_JOBS))),
    *(Compared(f"jobs {name}", of_jobs(name)) for name in STATES_OF_JOBS),
    Compared("cronjobs", of_cron_jobs()),
    *(sequence for name in KINDS for sequence in of_kind(name)),
    *(Compared(f"{name} warned", warned(KINDS[name][0], KINDS[name][1], IN_POD)) for name in KINDS),
    Compared(
        "statefulsets with claims warned",
        warned(
            STATEFUL_SETS,
            workload("StatefulSet", revisionHistoryLimit=-1, volumeClaimTemplates=FRACTIONS),
            IN_POD,
        ),
    ),
    *(Compared(f"{name} scaled", scaled(name)) for name in KINDS if name != "daemonsets"),
    Compared("autoscalers created", created(V2, SCALER, OF_SCALERS)),
    *(Compared(f"autoscalers {name}", of_scalers(name)) for name in STATES_OF_SCALERS),
    Compared("events", of_events()),
    Compared("flows", of_flows()),
    *(Compared(f"{name} applied", applied(name)) for name in KINDS),
    Compared("podtemplates", of_templates()),
    Compared("controllerrevisions", of_revisions()),
    Compared("budgets", of_budgets()),
    Compared("quotas", of_quotas()),
    Compared("ranges", of_ranges()),
    Compared("leases", of_leases()),
    Compared("classes", of_classes()),
    Compared("jobs warned", warned(JOBS, JOB, IN_POD)),
    Compared("cronjobs warned", warned(CRON_JOBS, CRON, f"{IN_JOB}.template.spec")),
    Compared("podtemplates warned", warned(TEMPLATES, TEMPLATE, "template.spec")),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_workload_rules(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    compared = Compared(sequence.name, sequence.asks, apart=True)
    namespace = f"rules-{sequence.name.replace(' ', '-')}"
    found = unnamed(differences(compared, namespace, kubernetes, podling))
    assert not found, f"\n{shown(compared, found)}"
