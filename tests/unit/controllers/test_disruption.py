"""How many pods of a budget may be evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.disruption import DisruptionBudgets, desired_healthy
from podling.controllers.disruption_scale import Scales
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.types.apps import Deployment, ReplicaSet
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Eviction, Pod
from podling.model.types.policy import PodDisruptionBudget, PodDisruptionBudgetSpec

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
KEY = ("ns", "b")


@pytest.mark.parametrize(
    ("spec", "pods", "desired"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": "50%"}, 5, 3),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": "30%"}, 5, 3),
        ({"maxUnavailable": 9}, 5, 0),
        ({}, 5, 0),
    ],
)
def test_desired(spec: Any, pods: int, desired: int) -> None:
    assert desired_healthy(from_data(spec, PodDisruptionBudgetSpec), pods) == desired


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    for name in ("one", "two", "three"):
        await cluster.pod(name, node="n", metadata={"labels": {"app": "a"}}, status=READY)
    selector = {"matchLabels": {"app": "a"}}
    await cluster.make(PodDisruptionBudget, "b", spec={"minAvailable": 2, "selector": selector})
    of = cluster.informers.of
    await cluster.run(
        DisruptionBudgets(
            cluster.account("disruption-controller"),
            of(PodDisruptionBudget),
            of(Pod),
            Scales(cluster.informers),
            cluster.events,
            cluster.clock,
        )
    )
    return cluster


def owner(kind: str, one: KubeObject, version: str = "apps/v1") -> dict[str, Any]:
    meta = one.metadata
    return {"apiVersion": version, "kind": kind, "name": meta.name, "uid": meta.uid, "controller": True}


async def test_percentages_are_of_what_the_owners_are_to_have(started: Cluster) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    deployment = await started.make(Deployment, "d", spec={**spec, "replicas": 4})
    above = {"ownerReferences": [owner("Deployment", deployment)]}
    one = await started.make(ReplicaSet, "d-1", metadata=above, spec={**spec, "replicas": 2})
    other = await started.make(ReplicaSet, "alone", spec={**spec, "replicas": 6})
    for name, of in (("one", one), ("two", one), ("three", other)):
        owned = {"metadata": {"ownerReferences": [owner("ReplicaSet", of)]}}
        await started.client.patch(Pod, name, "ns", owned)
    quarter = {"spec": {"minAvailable": "25%"}}
    await started.client.patch(PodDisruptionBudget, "b", "ns", quarter)
    await started.settle()
    assert await numbers(started) == (0, 3, 3, 10)
    await started.pod("bare", node="n", metadata={"labels": labels}, status=READY)
    await started.settle()
    assert await numbers(started) == (1, 4, 3, 10)
    other.metadata.name = "unknown"
    job = {"ownerReferences": [owner("Job", other, "batch/v1")]}
    await started.pod("odd", node="n", metadata={"labels": labels, **job}, status=READY)
    await started.settle()
    (condition,) = (await started.client.get(PodDisruptionBudget, "b", "ns")).status.conditions
    assert (condition.status, condition.reason) == ("False", "SyncFailed")
    assert condition.message == 'found no controllers for pod "odd"'
    assert (await numbers(started))[0] == 0
    unmanaged = "UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: &LabelSelector{"
    assert any(said.startswith(unmanaged) for said in started.events.said)
    failed = "CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: "
    assert started.events.said[-1] == f'{failed}found no controllers for pod "odd"'


async def test_one_that_selects_nothing_says_so(started: Cluster) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "none"}}}
    await started.make(PodDisruptionBudget, "none", spec=spec)
    await started.settle()
    assert set(started.events.said) == {"NoPods: No matching pods found"}


async def numbers(cluster: Cluster) -> tuple[int, int, int, int]:
    """(allowed, healthy, desired, expected)"""
    status = (await cluster.client.get(PodDisruptionBudget, "b", "ns")).status
    return status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods


async def evict(cluster: Cluster, name: str) -> None:
    body = Eviction()
    body.metadata.name, body.metadata.namespace = name, "ns"
    await cluster.client.create_subresource(Pod, name, "eviction", body)


async def test_what_is_healthy_is_counted(started: Cluster) -> None:
    assert await numbers(started) == (1, 3, 2, 3)
    status = (await started.client.get(PodDisruptionBudget, "b", "ns")).status
    assert [(c.type, c.status, c.reason) for c in status.conditions] == [
        ("DisruptionAllowed", "True", "SufficientPods")
    ]


async def test_evictions_keep_to_it(started: Cluster) -> None:
    await evict(started, "one")
    with pytest.raises(StatusError, match="Cannot evict pod as it would violate") as refused:
        await evict(started, "two")
    assert refused.value.code == 429
    await started.settle()
    assert await numbers(started) == (0, 2, 2, 3)
    assert (await started.client.get(PodDisruptionBudget, "b", "ns")).status.disrupted_pods == {}
    await started.client.delete(Pod, "one", "ns", grace_seconds=0)
    await started.settle()
    assert await numbers(started) == (0, 2, 2, 2)


async def test_a_pod_that_was_evicted_at_no_time_counts(started: Cluster) -> None:
    """Go's zero time, written as null, is long ago."""
    budget = await started.client.get(PodDisruptionBudget, "b", "ns")
    budget.status.disrupted_pods = {"one": None}
    await started.client.update(budget, subresource="status")
    await started.settle()
    assert await numbers(started) == (1, 3, 2, 3)
    assert (await started.client.get(PodDisruptionBudget, "b", "ns")).status.disrupted_pods == {}


async def test_a_pod_that_does_not_go_counts_again(started: Cluster) -> None:
    since = "2026-01-02T03:04:05Z"
    status = {"disruptedPods": {"one": since}, "disruptionsAllowed": 0}
    await started.client.patch(PodDisruptionBudget, "b", "ns", {"status": status}, subresource="status")
    await started.settle()
    assert await numbers(started) == (0, 2, 2, 3)
    started.clock.move(120)
    await started.reconcile(KEY)
    assert await numbers(started) == (1, 3, 2, 3)
