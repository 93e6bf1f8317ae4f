"""Jobs run pods until as many have succeeded as shall, and say how far they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.workloads import job_policies
from podling.controllers.workloads.job_orphans import TrackedPods
from podling.controllers.workloads.jobs import Jobs
from podling.model.rules.jobs import COMPLETION_INDEX, INDEX_FAILURES, TRACKING
from podling.model.types.batch import Job, JobStatus
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Never"}}


def controllers(cluster: Cluster) -> tuple[Jobs, TrackedPods]:
    client = cluster.account("job-controller")
    jobs, pods = cluster.informers.of(Job), cluster.informers.of(Pod)
    return Jobs(client, jobs, pods, cluster.events, cluster.clock), TrackedPods(client, jobs, pods)


async def begin(cluster: Cluster, **spec: Any) -> Jobs:
    jobs, orphans = controllers(cluster)
    await cluster.run(jobs, orphans)
    await cluster.make(Job, "work", spec={"template": TEMPLATE, **spec})
    await cluster.settle()
    return jobs


async def later(cluster: Cluster, jobs: Jobs, seconds: float) -> None:
    cluster.clock.move(seconds)
    jobs.queue.add(("ns", "work"))
    await cluster.settle()


async def pods_of(cluster: Cluster, phase: str = "Pending") -> list[Pod]:
    """In the order of their indexes."""
    pods = (await cluster.client.list(Pod, "ns")).items
    found = [pod for pod in pods if pod.status.phase == phase and not pod.metadata.deletion_timestamp]
    return sorted(found, key=lambda pod: int(pod.metadata.annotations.get(COMPLETION_INDEX, 0)))


async def end(cluster: Cluster, pod: Pod, phase: str = "Succeeded", **status: Any) -> None:
    said = {"status": {"phase": phase, **status}}
    await cluster.client.patch(Pod, pod.metadata.name, "ns", said, subresource="status")
    await cluster.settle()


async def status_of(cluster: Cluster) -> JobStatus:
    return (await cluster.client.get(Job, "work", "ns")).status


async def test_a_job_runs_to_its_completion(cluster: Cluster) -> None:
    await begin(cluster, completions=3, parallelism=2)
    first = await pods_of(cluster)
    assert len(first) == 2 and all(pod.metadata.finalizers == [TRACKING] for pod in first)
    assert all(pod.metadata.generate_name == "work-" for pod in first)
    await end(cluster, first[0])
    assert len(await pods_of(cluster)) == 2
    for pod in await pods_of(cluster):
        await end(cluster, pod)
    status = await status_of(cluster)
    assert (status.succeeded, status.active, status.failed) == (3, 0, 0)
    assert [(one.type, one.reason) for one in status.conditions] == [
        ("SuccessCriteriaMet", "CompletionsReached"),
        ("Complete", "CompletionsReached"),
    ]
    assert status.completion_time
    assert not any(pod.metadata.finalizers for pod in await pods_of(cluster, "Succeeded"))
    assert cluster.events.said[-1] == "Completed: Job completed"


async def test_a_failed_pod_is_replaced_after_a_while_until_the_limit(cluster: Cluster) -> None:
    jobs = await begin(cluster, backoffLimit=1)
    (pod,) = await pods_of(cluster)
    await end(cluster, pod, "Failed")
    assert await pods_of(cluster) == []
    await later(cluster, jobs, 10)
    (pod,) = await pods_of(cluster)
    await end(cluster, pod, "Failed")
    status = await status_of(cluster)
    assert status.failed == 2
    assert [(one.type, one.reason) for one in status.conditions] == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]


async def test_a_pod_that_would_not_count_is_replaced(cluster: Cluster) -> None:
    """A controller that was killed had taken its finalizer, and not deleted it."""
    await begin(cluster)
    (pod,) = await pods_of(cluster)
    await cluster.client.patch(Pod, pod.metadata.name, "ns", {"metadata": {"finalizers": None}})
    await cluster.settle()
    (other,) = await pods_of(cluster)
    assert other.metadata.name != pod.metadata.name and other.metadata.finalizers == [TRACKING]
    assert (await status_of(cluster)).failed == 0


async def test_pods_of_an_indexed_job(cluster: Cluster) -> None:
    await begin(cluster, completions=3, parallelism=2, completionMode="Indexed")
    pods = await pods_of(cluster)
    assert [pod.metadata.annotations[COMPLETION_INDEX] for pod in pods] == ["0", "1"]
    assert [pod.metadata.labels[COMPLETION_INDEX] for pod in pods] == ["0", "1"]
    assert [pod.spec.hostname for pod in pods] == ["work-0", "work-1"]
    assert [pod.metadata.generate_name for pod in pods] == ["work-0-", "work-1-"]
    (variable,) = pods[0].spec.containers[0].env
    assert variable.name == "JOB_COMPLETION_INDEX" and variable.value_from and variable.value_from.field_ref
    assert variable.value_from.field_ref.field_path == f"metadata.labels['{COMPLETION_INDEX}']"
    await end(cluster, pods[1])
    assert (await status_of(cluster)).completed_indexes == "1"
    assert [pod.metadata.annotations[COMPLETION_INDEX] for pod in await pods_of(cluster)] == ["0", "2"]


async def test_one_index_fails_and_the_others_go_on(cluster: Cluster) -> None:
    jobs = await begin(
        cluster, completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1
    )
    for number in range(2):
        first = (await pods_of(cluster))[0]
        assert first.metadata.annotations[INDEX_FAILURES] == str(number)
        await end(cluster, first, "Failed")
        await later(cluster, jobs, 10)
    (other,) = await pods_of(cluster)
    await end(cluster, other)
    status = await status_of(cluster)
    assert (status.completed_indexes, status.failed_indexes) == ("1", "0")
    assert [one.reason for one in status.conditions] == ["FailedIndexes", "FailedIndexes"]


async def test_a_job_that_is_suspended_has_no_pods_and_no_start(cluster: Cluster) -> None:
    await begin(cluster, completions=2, parallelism=2)
    await cluster.client.patch(Job, "work", "ns", {"spec": {"suspend": True}})
    await cluster.settle()
    status = await status_of(cluster)
    assert await pods_of(cluster) == [] and (status.start_time, status.failed) == ("", 0)
    await cluster.client.patch(Job, "work", "ns", {"spec": {"suspend": False}})
    await cluster.settle()
    assert len(await pods_of(cluster)) == 2 and (await status_of(cluster)).start_time
    assert [line for line in cluster.events.said if line.startswith(("Susp", "Res"))] == [
        "Suspended: Job suspended",
        "Resumed: Job resumed",
    ]


async def test_a_deadline(cluster: Cluster) -> None:
    jobs = await begin(cluster, activeDeadlineSeconds=60)
    await later(cluster, jobs, 59)
    assert len(await pods_of(cluster)) == 1
    await later(cluster, jobs, 1)
    status = await status_of(cluster)
    assert [one.reason for one in status.conditions] == ["DeadlineExceeded", "DeadlineExceeded"]
    assert cluster.events.said[-1] == "DeadlineExceeded: Job was active longer than specified deadline"


async def test_what_another_manages_is_left_alone(cluster: Cluster) -> None:
    await begin(cluster, managedBy="example.com/other")
    assert await pods_of(cluster) == [] and await status_of(cluster) == JobStatus()


async def test_pods_of_a_job_that_is_gone_are_released(cluster: Cluster) -> None:
    await begin(cluster, completions=2, parallelism=2)
    await cluster.client.delete(Job, "work", "ns", propagation="Background")
    await cluster.settle()
    assert [pod.metadata.finalizers for pod in await pods_of(cluster)] == [[], []]


async def test_what_is_counted_is_not_looked_at_again(cluster: Cluster) -> None:
    jobs = await begin(cluster, completions=20, parallelism=2)
    for _ in range(10):
        for pod in await pods_of(cluster):
            await end(cluster, pod)
    job = await cluster.client.get(Job, "work", "ns")
    assert job.status.succeeded == 20 and jobs._owned.of(job) == [] and not jobs._failures


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("grace", [(1 << 63) - 1, -1 << 63])
def test_a_pod_that_says_anything_of_its_deletion_has_an_end(when: str, grace: int) -> None:
    """Who creates it by apply may."""
    meta = ObjectMeta(deletion_timestamp=when, deletion_grace_period_seconds=grace)
    assert job_policies.finished_at(Pod(metadata=meta)).tzinfo
