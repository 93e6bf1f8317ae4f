"""R-SYS-8: the same Jobs and CronJobs come to the same as by the kube-controller-manager.

No kubelet runs: the status of pods is written here. After each step of a story both must come to the same
objects, and at the end have told the same events.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from peer.sequence import MERGE_PATCH
from peer.server import Asking
from peer.two_managers import (
    BATCH,
    CORE,
    Step,
    Told,
    both_running,
    changed,
    deleted,
    listed,
    lived,
    made,
    sent,
    together,
    unlike,
)
from podling.model.time import rfc3339

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = (
    "job-controller,cronjob-controller,ttl-after-finished-controller,garbage-collector-controller,"
    "resourcequota-controller"
)
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
LONG_AGO, FAR = "2026-01-02T03:04:05Z", "2099-01-01T00:00:00Z"
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]
INDEXED = {"completionMode": "Indexed"}


def template(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "a", "image": "one"}]
    return {"spec": {"containers": containers, "restartPolicy": "Never", **spec}}


def job(**spec: Any) -> Step:
    return made("jobs", {"template": template(), **spec})


def pods(phase: str, *indexes: int, at: str = LONG_AGO, code: int = 0, **status: Any) -> Step:
    """Those that have not ended get to a phase: of the indexes, or all; of a Job without indexes as many as
    there are indexes."""

    def step(asking: Asking, ns: str) -> None:
        found = [
            pod
            for pod in listed(asking, ns, "pods")
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
            and "deletionTimestamp" not in pod["metadata"]
        ]
        by_index = {pod["metadata"].get("annotations", {}).get(INDEX): pod for pod in found}
        if indexes and None in by_index:
            found = found[: len(indexes)]
        elif indexes:
            found = [by_index[str(index)] for index in indexes]
        assert found, "no pods"
        for pod in found:
            state: Any = {"running": {}}
            if phase in ("Succeeded", "Failed"):
                state = {"terminated": {"exitCode": code, "finishedAt": at}}
            container = {"name": "a", "image": "one", "imageID": "", "ready": False, "restartCount": 0}
            body = {"phase": phase, "containerStatuses": [{**container, "state": state}], **status}
            target = f"{CORE.format(ns)}/pods/{pod['metadata']['name']}/status"
            sent(asking, "PATCH", target, {"status": body}, Content_Type=MERGE_PATCH)

    return step


def pods_deleted(asking: Asking, ns: str, **options: Any) -> None:
    for pod in listed(asking, ns, "pods"):
        sent(asking, "DELETE", f"{CORE.format(ns)}/pods/{pod['metadata']['name']}", options)


def pods_gone(asking: Asking, ns: str) -> None:
    """Those that are being deleted."""
    for pod in listed(asking, ns, "pods"):
        if "deletionTimestamp" in pod["metadata"]:
            target = f"{CORE.format(ns)}/pods/{pod['metadata']['name']}"
            sent(asking, "DELETE", target, {"gracePeriodSeconds": 0})


def pod_by_hand(**metadata: Any) -> Step:
    spec = template()["spec"]
    return made("pods", spec, **{"name": "hand", **metadata})


def appear(asking: Asking, ns: str) -> None:
    """Returns when there are pods that run or will."""
    for _ in range(400):
        for pod in listed(asking, ns, "pods"):
            is_active = pod["status"]["phase"] not in ("Succeeded", "Failed")
            if is_active and "deletionTimestamp" not in pod["metadata"]:
                return
        threading.Event().wait(0.1)


def nothing(asking: Asking, ns: str) -> None:
    """Only time goes on."""


def failed_now(asking: Asking, ns: str) -> None:
    pods("Failed", at=rfc3339(datetime.now(UTC)))(asking, ns)


def cron(schedule: str = "0 0 1 1 *", last: str = "2023-06-01T00:00:00Z", **spec: Any) -> Step:
    """It last made a Job at `last`."""
    template_of_jobs = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"template": template()},
    }

    def step(asking: Asking, ns: str) -> None:
        body = {"schedule": schedule, "jobTemplate": template_of_jobs, "suspend": True, **spec}
        made("cronjobs", body, "tick")(asking, ns)
        target = f"{BATCH.format(ns)}/cronjobs/tick"
        status = {"status": {"lastScheduleTime": last}}
        sent(asking, "PATCH", f"{target}/status", status, Content_Type=MERGE_PATCH)
        if "suspend" not in spec:
            sent(asking, "PATCH", target, {"spec": {"suspend": False}}, Content_Type=MERGE_PATCH)

    return step


def rescheduled(schedule: str) -> Step:
    """Looked at again under another schedule."""
    return together(
        changed("cronjobs", "tick", spec={"schedule": schedule}),
        changed("cronjobs", "tick", metadata={"annotations": {"schedule": schedule}}),
    )


def long_missed(asking: Asking, ns: str) -> None:
    last = rfc3339(datetime.now(UTC) - timedelta(hours=200))
    cron("0 * * * *", last=last)(asking, ns)


def failed_often(seconds_ago: int) -> Step:
    """The pods of indexes whose pods have failed fifty times before."""

    def step(asking: Asking, ns: str) -> None:
        for pod in listed(asking, ns, "pods"):
            body = {"metadata": {"annotations": {FAILURES: "50"}}}
            changed("pods", pod["metadata"]["name"], **body)(asking, ns)
        at = rfc3339(datetime.now(UTC) - timedelta(seconds=seconds_ago))
        pods("Failed", code=1, at=at)(asking, ns)

    return step


def job_of_hand(asking: Asking, ns: str) -> None:
    """As `kubectl create job --from` makes it."""
    (one,) = listed(asking, ns, "cronjobs")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": one["metadata"]["uid"]}
    made("jobs", {"template": template()}, "hand", ownerReferences=[{**owner, "controller": True}])(
        asking, ns
    )


def job_gone(asking: Asking, ns: str) -> None:
    for one in listed(asking, ns, "jobs"):
        deleted("jobs", one["metadata"]["name"])(asking, ns)


def policy(*rules: Mapping[str, Any]) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}}


def on_code(action: str, *values: int, operator: str = "In") -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}


def quota(asking: Asking, ns: str) -> None:
    """Of one pod."""
    body = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    sent(asking, "POST", f"{CORE.format(ns)}/resourcequotas", body)
    for _ in range(600):
        if listed(asking, ns, "resourcequotas")[0].get("status", {}).get("used"):
            return
        threading.Event().wait(0.1)


BOUND = template(nodeName="n")
STORIES: dict[str, Sequence[Step]] = {
    "one": [job(), pods("Running", conditions=READY), pods("Succeeded")],
    "several": [
        job(completions=3, parallelism=2),
        pods("Succeeded", 0),
        pods("Succeeded"),
    ],
    "work-queue": [
        job(parallelism=3),
        pods("Running", conditions=READY),
        pods("Succeeded", 0),
        pods("Succeeded"),
    ],
    "none": [job(completions=0)],
    "no-parallelism": [job(parallelism=0, completions=2), changed("jobs", spec={"parallelism": 1})],
    "indexed": [
        job(**INDEXED, completions=4, parallelism=2),
        pods("Succeeded", 1),
        pods("Succeeded", 2),
        pods("Succeeded", 0, 3),
    ],
    "own-variable": [
        made(
            "jobs",
            {
                **INDEXED,
                "completions": 1,
                "template": {
                    "metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}},
                    "spec": {
                        "initContainers": [{"name": "i", "image": "one", "env": [{"name": "X"}]}],
                        "containers": [
                            {"name": "a", "image": "1", "env": [{"name": "JOB_COMPLETION_INDEX"}]}
                        ],
                        "restartPolicy": "Never",
                    },
                },
            },
            name="work" + "k" * 55,
        )
    ],
    "fails": [
        job(backoffLimit=1),
        pods("Failed", code=3),
        pods("Failed", code=3),
    ],
    "fails-with-others": [
        job(backoffLimit=1, completions=5, parallelism=4),
        pods("Running", conditions=READY),
        pods("Failed", 0, 0, code=1, at=FAR),
    ],
    "fails-bound": [
        job(backoffLimit=0, completions=2, parallelism=2, template=BOUND),
        pods("Failed", 0, code=1),
        pods_gone,
    ],
    "waits": [job(), pods("Failed", code=1, at=FAR)],
    "waits-a-while": [job(), together(failed_now, appear)],
    "restarts": [
        job(template=template(restartPolicy="OnFailure"), backoffLimit=2),
        pods(
            "Running",
            containerStatuses=[
                {"name": "a", "image": "one", "imageID": "", "ready": False, "restartCount": 1}
            ],
        ),
        pods(
            "Running",
            containerStatuses=[
                {"name": "a", "image": "one", "imageID": "", "ready": False, "restartCount": 2}
            ],
        ),
    ],
    "per-index": [
        job(**INDEXED, completions=3, parallelism=3, backoffLimitPerIndex=1),
        pods("Failed", 1, code=1),
        pods("Failed", 1, code=1),
        pods("Succeeded", 0),
        pods("Succeeded", 2),
    ],
    "per-index-waits": [
        job(**INDEXED, completions=2, parallelism=1, backoffLimitPerIndex=1),
        pods("Failed", 0, code=1, at=FAR),
    ],
    "longest-delay": [
        job(**INDEXED, completions=1, backoffLimitPerIndex=99),
        failed_often(500),
    ],
    "longer-than-any-delay": [
        job(**INDEXED, completions=1, backoffLimitPerIndex=99),
        failed_often(601),
    ],
    "max-failed-indexes": [
        job(**INDEXED, completions=4, parallelism=4, backoffLimitPerIndex=0, maxFailedIndexes=1),
        pods("Failed", 1, code=1),
        pods("Failed", 3, code=1),
    ],
    "policy-fails": [
        job(
            completions=3,
            parallelism=3,
            **policy(on_code("Ignore", 5), on_code("Count", 4), on_code("FailJob", 42)),
        ),
        pods("Failed", 0, code=5),
        pods("Failed", 0, code=4),
        pods("Failed", 0, code=42),
    ],
    "policy-conditions": [
        job(
            completions=2,
            parallelism=2,
            **policy(
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                {"action": "FailJob", "onPodConditions": [{"type": "Bad", "status": "False"}]},
            ),
        ),
        pods("Failed", 0, code=1, conditions=[{"type": "DisruptionTarget", "status": "True"}]),
        pods("Failed", 0, code=1, conditions=[{"type": "Bad", "status": "True"}]),
        pods("Failed", 0, code=1, conditions=[{"type": "Bad", "status": "False"}]),
    ],
    "policy-fails-index": [
        job(
            **INDEXED,
            completions=3,
            parallelism=3,
            backoffLimitPerIndex=2,
            **policy(on_code("FailIndex", 9), on_code("Ignore", 7)),
        ),
        pods("Failed", 0, code=9),
        pods("Failed", 1, code=7),
        pods("Failed", 1, code=1),
        pods("Succeeded", 1, 2),
    ],
    "success-policy": [
        job(
            **INDEXED,
            completions=5,
            parallelism=5,
            successPolicy={"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 2}]},
        ),
        pods("Succeeded", 0),
        pods("Succeeded", 3),
    ],
    "success-bound": [
        job(
            **INDEXED,
            completions=3,
            parallelism=3,
            template=BOUND,
            successPolicy={"rules": [{"succeededIndexes": "1-2"}, {"succeededCount": 1}]},
        ),
        pods("Succeeded", 0),
        pods_gone,
    ],
    "suspended": [
        job(suspend=True, completions=2, parallelism=2),
        changed("jobs", spec={"suspend": False}),
        pods("Succeeded", 0),
        changed("jobs", spec={"suspend": True}),
        changed("jobs", spec={"suspend": False}),
        pods("Succeeded"),
    ],
    "suspended-bound": [
        job(completions=2, parallelism=2, template=BOUND),
        changed("jobs", spec={"suspend": True}),
        pods_gone,
        changed("jobs", spec={"suspend": False}),
    ],
    "replaced-when-ended": [
        job(completions=2, parallelism=2, podReplacementPolicy="Failed", template=BOUND),
        pods_deleted,
        pods_gone,
    ],
    "replaced-at-once": [
        job(completions=2, parallelism=2, template=BOUND),
        together(pods_deleted, appear),
        pods_gone,
    ],
    "indexed-replaced-when-ended": [
        job(**INDEXED, completions=2, parallelism=2, podReplacementPolicy="Failed", template=BOUND),
        pods_deleted,
        pods_gone,
    ],
    "elastic": [
        job(**INDEXED, completions=4, parallelism=4),
        pods("Succeeded", 3),
        changed("jobs", spec={"completions": 2, "parallelism": 2}),
        changed("jobs", spec={"completions": 5, "parallelism": 5}),
        pods("Succeeded"),
    ],
    "less-parallel": [
        job(completions=6, parallelism=4),
        pods("Running", 0, conditions=READY),
        changed("jobs", spec={"parallelism": 1}),
        changed("jobs", spec={"parallelism": 0}),
    ],
    "managed": [job(managedBy="example.com/other"), nothing],
    "managed-here": [job(managedBy="kubernetes.io/job-controller"), pods("Succeeded")],
    "deadline": [job(activeDeadlineSeconds=1), nothing],
    "deadline-at-once": [job(activeDeadlineSeconds=0)],
    "deadline-bound": [job(activeDeadlineSeconds=2, template=BOUND), nothing, pods_gone],
    "background": [
        job(completions=2, parallelism=2, template=BOUND),
        deleted("jobs"),
        pods_gone,
    ],
    "orphan": [job(completions=2, parallelism=2), deleted("jobs", policy="Orphan")],
    "foreground": [
        job(completions=2, parallelism=2, template=BOUND),
        deleted("jobs", policy="Foreground"),
        pods_gone,
    ],
    "adopts": [
        pod_by_hand(labels={"app": "work"}),
        made(
            "jobs",
            {
                "manualSelector": True,
                "selector": {"matchLabels": {"app": "work"}},
                "completions": 2,
                "parallelism": 2,
                "template": {**template(), "metadata": {"labels": {"app": "work"}}},
            },
        ),
        changed("pods", "hand", metadata={"labels": {"app": "other"}}),
        pods("Succeeded"),
    ],
    "cron": [cron(), pods("Succeeded"), rescheduled("0 0 2 1 *"), pods("Succeeded")],
    "cron-zone": [cron("5 12 1 1 *", timeZone="Asia/Tokyo")],
    "cron-forbid": [cron(concurrencyPolicy="Forbid"), rescheduled("0 0 2 1 *")],
    "cron-replace": [cron(concurrencyPolicy="Replace"), rescheduled("0 0 2 1 *")],
    "cron-allow": [cron(concurrencyPolicy="Allow"), rescheduled("0 0 2 1 *")],
    "cron-history": [
        cron(successfulJobsHistoryLimit=1),
        pods("Succeeded"),
        rescheduled("0 0 2 1 *"),
        pods("Succeeded"),
    ],
    "cron-fails": [
        cron(jobTemplate={"spec": {"template": template(), "backoffLimit": 0}}),
        pods("Failed", code=1),
        rescheduled("0 0 2 1 *"),
        pods("Failed", code=1),
    ],
    "cron-too-late": [cron(startingDeadlineSeconds=20)],
    "cron-many": [long_missed],
    "cron-many-of-one-day": [cron("* * 1 1 *", last="2025-12-31T00:00:00Z")],
    "cron-never": [cron("0 0 31 2 *")],
    "cron-suspended": [cron(suspend=True), changed("cronjobs", "tick", spec={"suspend": False})],
    "cron-by-hand": [cron(suspend=True), job_of_hand, pods("Succeeded")],
    "cron-missing": [cron(), job_gone],
    "cron-deleted": [cron(), deleted("cronjobs", "tick")],
    "ttl": [job(ttlSecondsAfterFinished=3), pods("Succeeded"), nothing],
    # The second pod once the first one, which then does not count, has ended.
    "quota": [
        together(quota, job(completions=2, parallelism=2)),
        together(pods("Succeeded"), appear),
        pods("Succeeded"),
    ],
    "ttl-none": [job(ttlSecondsAfterFinished=0), pods("Succeeded"), nothing],
}


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, Told]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with both_running(kubernetes_programs, there, here, CONTROLLERS) as clusters:
        for cluster in clusters:
            sent(cluster.asking, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        yield lived(clusters, STORIES)


@pytest.mark.parametrize("story", STORIES)
def test_both_come_to_the_same(both: list[dict[str, Told]], story: str) -> None:
    theirs, ours = (each[story] for each in both)
    if story == "quota":
        # How often it is tried is a matter of time.
        theirs, ours = (Told(one.steps, sorted({*one.events})) for one in (theirs, ours))
    if story.startswith("cron-") and story != "cron-missing":
        # Kubernetes says so of a Job that its cache does not have yet.
        theirs, ours = (
            Told(one.steps, [event for event in one.events if " MissingJob " not in event])
            for one in (theirs, ours)
        )
    found = unlike(theirs, ours)
    assert not found, "\n".join(found)
