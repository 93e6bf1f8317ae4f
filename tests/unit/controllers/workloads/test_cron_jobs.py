"""CronJobs make Jobs when these are due, and finished Jobs go when their time is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.workloads.cron_jobs import SCHEDULED, CronJobs
from podling.controllers.workloads.finished_jobs import FinishedJobs
from podling.model.types.batch import CronJob, CronJobStatus, Job

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Never"}}
COMPLETE = [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]
FAILED = [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]
MINUTES = 29455384
"""Since 1970, when the clock of the tests begins, at 03:04:05 on the second of January 2026."""


def cron_jobs(cluster: Cluster) -> CronJobs:
    client, informers = cluster.account("cronjob-controller"), cluster.informers
    return CronJobs(client, informers.of(CronJob), informers.of(Job), cluster.events, cluster.clock)


async def begin(cluster: Cluster, schedule: str = "* * * * *", **spec: Any) -> None:
    await cluster.run(cron_jobs(cluster))
    job = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": TEMPLATE}}
    await cluster.make(CronJob, "tick", spec={"schedule": schedule, "jobTemplate": job, **spec})
    await cluster.settle()


async def later(cluster: Cluster, seconds: float) -> None:
    cluster.clock.move(seconds)
    await cluster.reconcile(("ns", "tick"))


async def end(cluster: Cluster, name: str, conditions: list[dict[str, str]] = COMPLETE) -> None:
    now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    job = await cluster.client.get(Job, name, "ns")
    body = {
        "conditions": [{**one, "lastTransitionTime": now} for one in conditions],
        "startTime": job.status.start_time or now,
        **({"completionTime": now} if conditions is COMPLETE else {}),
    }
    await cluster.client.patch(Job, name, "ns", {"status": body}, subresource="status")
    await cluster.settle()


async def status_of(cluster: Cluster) -> CronJobStatus:
    return (await cluster.client.get(CronJob, "tick", "ns")).status


async def test_a_job_is_made_when_it_is_due(cluster: Cluster) -> None:
    await begin(cluster)
    assert await cluster.names(Job) == []
    await later(cluster, 54)
    assert await cluster.names(Job) == []
    await later(cluster, 2)
    (name,) = await cluster.names(Job)
    assert name == f"tick-{MINUTES + 1}"
    job = await cluster.client.get(Job, name, "ns")
    assert job.metadata.annotations == {SCHEDULED: "2026-01-02T03:05:00Z"}
    assert job.metadata.labels["a"] == "b"
    (owner,) = job.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("CronJob", "tick", True)
    status = await status_of(cluster)
    assert status.last_schedule_time == "2026-01-02T03:05:00Z"
    assert [ref.name for ref in status.active] == [name]
    assert cluster.events.said == [f"SuccessfulCreate: Created job {name}"]


async def test_the_time_is_told_in_the_time_zone(cluster: Cluster) -> None:
    await begin(cluster, "5 12 * * *", timeZone="Asia/Tokyo")
    await later(cluster, 60)
    (name,) = await cluster.names(Job)
    job = await cluster.client.get(Job, name, "ns")
    assert job.metadata.annotations == {SCHEDULED: "2026-01-02T12:05:00+09:00"}


async def test_history_is_kept_as_long_as_it_may_be(cluster: Cluster) -> None:
    await begin(cluster, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for ending in (COMPLETE, FAILED, COMPLETE):
        await later(cluster, 60)
        await end(cluster, (await cluster.names(Job))[-1], ending)
    assert await cluster.names(Job) == [f"tick-{MINUTES + 3}"]
    status = await status_of(cluster)
    assert status.active == [] and status.last_successful_time == "2026-01-02T03:07:05Z"
    assert (
        f"SawCompletedJob: Saw completed job: tick-{MINUTES + 1}, condition: Complete" in cluster.events.said
    )
    assert f"SuccessfulDelete: Deleted job tick-{MINUTES + 2}" in cluster.events.said


@pytest.mark.parametrize(
    ("policy", "left", "said"),
    [
        ("Allow", [1, 2], f"SuccessfulCreate: Created job tick-{MINUTES + 2}"),
        (
            "Forbid",
            [1],
            "JobAlreadyActive: Not starting job because prior execution is running and concurrency "
            "policy is Forbid",
        ),
        ("Replace", [2], f"SuccessfulCreate: Created job tick-{MINUTES + 2}"),
    ],
)
async def test_one_that_runs_still(cluster: Cluster, policy: str, left: list[int], said: str) -> None:
    await begin(cluster, concurrencyPolicy=policy)
    await later(cluster, 60)
    await later(cluster, 60)
    assert await cluster.names(Job) == [f"tick-{MINUTES + number}" for number in left]
    assert said in cluster.events.said
    assert [ref.name for ref in (await status_of(cluster)).active] == await cluster.names(Job)


async def test_only_the_last_of_many_that_were_missed_is_made(cluster: Cluster) -> None:
    await begin(cluster)
    await later(cluster, 3 * 3600)
    assert await cluster.names(Job) == [f"tick-{MINUTES + 180}"]
    assert cluster.events.said[0].startswith("TooManyMissedTimes: too many missed start times.")


async def test_one_that_is_too_late_is_not_made(cluster: Cluster) -> None:
    await begin(cluster, "0 * * * *", startingDeadlineSeconds=60)
    await later(cluster, 3600)
    assert await cluster.names(Job) == []


async def test_a_schedule_that_never_comes_is_told_of(cluster: Cluster) -> None:
    await begin(cluster, "0 0 31 2 *")
    await later(cluster, 60)
    assert (
        "InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than "
        "1 second"
    ) in cluster.events.said


async def test_nothing_is_made_while_it_is_suspended(cluster: Cluster) -> None:
    await begin(cluster, suspend=True)
    await later(cluster, 600)
    assert await cluster.names(Job) == []


async def test_jobs_made_by_others_and_jobs_that_went_are_told_of(cluster: Cluster) -> None:
    await begin(cluster)
    await later(cluster, 60)
    cron_job = await cluster.client.get(CronJob, "tick", "ns")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": cron_job.metadata.uid}
    metadata = {"ownerReferences": [{**owner, "controller": True}]}
    await cluster.make(Job, "hand", metadata=metadata, spec={"template": TEMPLATE})
    await cluster.client.delete(Job, f"tick-{MINUTES + 1}", "ns", propagation="Background")
    await cluster.settle()
    assert (
        "UnexpectedJob: Saw a job that the controller did not create or forgot: hand" in cluster.events.said
    )
    assert f"MissingJob: Active job went missing: tick-{MINUTES + 1}" in cluster.events.said
    assert (await status_of(cluster)).active == []


async def test_a_job_that_was_made_before_the_end_is_found_again(cluster: Cluster) -> None:
    await begin(cluster)
    cron_job = await cluster.client.get(CronJob, "tick", "ns")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": cron_job.metadata.uid}
    metadata = {"ownerReferences": [{**owner, "controller": True}]}
    name = f"tick-{MINUTES + 1}"
    await cluster.make(Job, name, metadata=metadata, spec={"template": TEMPLATE})
    await later(cluster, 60)
    assert await cluster.names(Job) == [name]
    assert [ref.name for ref in (await status_of(cluster)).active] == [name]


async def test_a_finished_job_goes_when_its_time_is_over(cluster: Cluster) -> None:
    client = cluster.account("ttl-after-finished-controller")
    await cluster.run(FinishedJobs(client, cluster.informers.of(Job), cluster.clock))
    await cluster.make(Job, "work", spec={"template": TEMPLATE, "ttlSecondsAfterFinished": 30})
    await cluster.make(Job, "stays", spec={"template": TEMPLATE})
    for name in ("work", "stays"):
        await end(cluster, name)
    cluster.clock.move(29)
    await cluster.reconcile(("ns", "work"))
    assert not (await cluster.client.get(Job, "work", "ns")).metadata.deletion_timestamp
    cluster.clock.move(1)
    await cluster.reconcile(("ns", "work"))
    gone = await cluster.client.get(Job, "work", "ns")
    assert gone.metadata.deletion_timestamp and gone.metadata.finalizers == ["foregroundDeletion"]
    assert not (await cluster.client.get(Job, "stays", "ns")).metadata.deletion_timestamp
