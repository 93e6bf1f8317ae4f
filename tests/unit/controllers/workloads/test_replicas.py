"""ReplicaSets and ReplicationControllers have as many pods as they say, and say what they have."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.workloads.claims import Owned
from podling.controllers.workloads.replicas import CONTROLLERS, SETS, Replicas
from podling.model.errors import StatusError
from podling.model.types.apps import ReplicaSet
from podling.model.types.core import ResourceQuota
from podling.model.types.pod import Pod
from podling.model.types.replication_controller import ReplicationController

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}


def template(**labels: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": {**LABELS, **labels}},
        "spec": {"containers": [{"name": "a", "image": "i"}]},
    }


def sets(cluster: Cluster) -> Replicas[ReplicaSet]:
    pods = cluster.informers.of(Pod)
    return Replicas(
        SETS,
        cluster.account("replicaset-controller"),
        cluster.informers.of(ReplicaSet),
        pods,
        Owned(pods),
        cluster.events,
        cluster.clock,
    )


async def begin(cluster: Cluster, replicas: int = 2, **spec: Any) -> ReplicaSet:
    await cluster.run(sets(cluster))
    body = {"replicas": replicas, "selector": SELECTOR, "template": template(), **spec}
    made = await cluster.make(ReplicaSet, "web", spec=body)
    await cluster.settle()
    return made


async def pods_of(cluster: Cluster) -> list[Pod]:
    return (await cluster.client.list(Pod, "ns")).items


async def ready(cluster: Cluster, pod: Pod, *, node: str = "", **status: Any) -> None:
    since = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    said = {"status": {"phase": "Running", "conditions": [condition], **status}}
    await cluster.client.patch(Pod, pod.metadata.name, "ns", said, subresource="status")


async def scaled(cluster: Cluster, replicas: int) -> None:
    await cluster.client.patch(ReplicaSet, "web", "ns", {"spec": {"replicas": replicas}})
    await cluster.settle()


async def the_set(cluster: Cluster) -> ReplicaSet:
    return await cluster.client.get(ReplicaSet, "web", "ns")


async def test_pods_are_made_by_the_template(cluster: Cluster) -> None:
    made = await begin(cluster)
    pods = await pods_of(cluster)
    assert len(pods) == 2
    for pod in pods:
        assert pod.metadata.generate_name == "web-" and pod.metadata.labels == LABELS
        (owner,) = pod.metadata.owner_references
        assert (owner.uid, owner.kind, owner.controller, owner.block_owner_deletion) == (
            made.metadata.uid,
            "ReplicaSet",
            True,
            True,
        )
    assert sorted(cluster.events.said) == sorted(
        f"SuccessfulCreate: Created pod: {pod.metadata.name}" for pod in pods
    )
    status = (await the_set(cluster)).status
    assert (status.replicas, status.fully_labeled_replicas, status.observed_generation) == (2, 2, 1)


async def test_a_key_that_comes_back_before_the_informer_makes_no_pod_twice(cluster: Cluster) -> None:
    controller = sets(cluster)
    await cluster.run(controller)
    body = {"replicas": 3, "selector": SELECTOR, "template": template()}
    await cluster.make(ReplicaSet, "web", spec=body)
    await cluster.see()
    for _ in range(3):
        # Its status is written by an object that is old, which is refused.
        with suppress(StatusError):
            await controller.reconcile(("ns", "web"))
    await cluster.settle()
    assert len(await pods_of(cluster)) == 3


async def test_a_key_that_comes_back_before_the_informer_deletes_no_other_pod(cluster: Cluster) -> None:
    controller = sets(cluster)
    await cluster.run(controller)
    body = {"replicas": 3, "selector": SELECTOR, "template": template()}
    await cluster.make(ReplicaSet, "web", spec=body)
    await cluster.settle()
    await cluster.client.patch(ReplicaSet, "web", "ns", {"spec": {"replicas": 2}})
    await cluster.see()
    for _ in range(3):
        # Its status is written by an object that is old, which is refused.
        with suppress(StatusError):
            await controller.reconcile(("ns", "web"))
    await cluster.settle()
    assert len(await pods_of(cluster)) == 2


async def test_those_that_are_not_ready_go_first(cluster: Cluster) -> None:
    await begin(cluster, 3)
    one, other, _ = await pods_of(cluster)
    await ready(cluster, one)
    await ready(cluster, other)
    await scaled(cluster, 2)
    assert {pod.metadata.name for pod in await pods_of(cluster)} == {one.metadata.name, other.metadata.name}
    assert (await the_set(cluster)).status.ready_replicas == 2


async def test_a_pod_that_fails_is_replaced_and_stays(cluster: Cluster) -> None:
    await begin(cluster, 1)
    (pod,) = await pods_of(cluster)
    await cluster.client.patch(
        Pod, pod.metadata.name, "ns", {"status": {"phase": "Failed"}}, subresource="status"
    )
    await cluster.settle()
    assert len(await pods_of(cluster)) == 2
    assert (await the_set(cluster)).status.replicas == 1


async def test_a_pod_that_ends_is_replaced_at_once_and_counted_as_terminating(cluster: Cluster) -> None:
    made = await begin(
        cluster, 1, template={**template(), "metadata": {"labels": LABELS, "finalizers": ["e.x/f"]}}
    )
    (pod,) = await pods_of(cluster)
    await cluster.client.delete(Pod, pod.metadata.name, "ns")
    await cluster.settle()
    status = (await the_set(cluster)).status
    assert (status.replicas, status.terminating_replicas) == (1, 1)
    assert made.status.terminating_replicas is None


async def test_pods_are_adopted_and_released(cluster: Cluster) -> None:
    await cluster.pod("orphan", metadata={"labels": LABELS})
    made = await begin(cluster, 1)
    (pod,) = await pods_of(cluster)
    assert [ref.uid for ref in pod.metadata.owner_references] == [made.metadata.uid]
    await cluster.client.patch(Pod, "orphan", "ns", {"metadata": {"labels": {"app": "other"}}})
    await cluster.settle()
    owners = {pod.metadata.name: pod.metadata.owner_references for pod in await pods_of(cluster)}
    assert owners.pop("orphan") == [] and len(owners) == 1


async def test_an_orphan_that_comes_later_is_adopted_and_one_too_many_goes(cluster: Cluster) -> None:
    await begin(cluster, 1)
    await cluster.pod("orphan", metadata={"labels": LABELS})
    await cluster.settle()
    assert len(await pods_of(cluster)) == 1


async def test_pods_of_another_owner_are_left(cluster: Cluster) -> None:
    other = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": True}
    await cluster.pod("theirs", metadata={"labels": LABELS, "ownerReferences": [other]})
    await begin(cluster, 1)
    assert len(await pods_of(cluster)) == 2


async def test_a_set_that_is_deleted_makes_no_more_and_adopts_none(cluster: Cluster) -> None:
    await begin(cluster, 1)
    (pod,) = await pods_of(cluster)
    await cluster.client.delete(ReplicaSet, "web", "ns", propagation="Foreground")
    await cluster.client.delete(Pod, pod.metadata.name, "ns")
    await cluster.pod("orphan", metadata={"labels": LABELS})
    await cluster.settle()
    (left,) = await pods_of(cluster)
    assert left.metadata.owner_references == []


async def test_it_says_why_there_are_too_few(cluster: Cluster) -> None:
    quota = {"pods": "1"}
    await cluster.make(
        ResourceQuota, "few", spec={"hard": quota}, status={"hard": quota, "used": {"pods": "0"}}
    )
    with pytest.raises(StatusError, match="exceeded quota"):
        await begin(cluster, 3)
    (condition,) = (await the_set(cluster)).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1" in condition.message
    assert any(said.startswith("FailedCreate: Error creating: pods ") for said in cluster.events.said)
    await scaled(cluster, 1)
    assert (await the_set(cluster)).status.conditions == []


async def test_a_ready_pod_is_available_after_a_while(cluster: Cluster) -> None:
    await begin(cluster, 1, minReadySeconds=30)
    (pod,) = await pods_of(cluster)
    await ready(cluster, pod)
    await cluster.settle()
    status = (await the_set(cluster)).status
    assert (status.ready_replicas, status.available_replicas) == (1, 0)
    cluster.clock.move(30)
    await cluster.reconcile(("ns", "web"))
    assert (await the_set(cluster)).status.available_replicas == 1


async def test_controllers_do_as_sets(cluster: Cluster) -> None:
    pods = cluster.informers.of(Pod)
    account = cluster.account("replication-controller")
    owners = cluster.informers.of(ReplicationController)
    await cluster.run(
        Replicas(CONTROLLERS, account, owners, pods, Owned(pods), cluster.events, cluster.clock)
    )
    await cluster.make(
        ReplicationController, "web", spec={"replicas": 2, "selector": LABELS, "template": template()}
    )
    await cluster.settle()
    assert len(await pods_of(cluster)) == 2
    await cluster.client.patch(ReplicationController, "web", "ns", {"spec": {"replicas": 0}})
    await cluster.settle()
    assert await pods_of(cluster) == []
    assert (await cluster.client.get(ReplicationController, "web", "ns")).status.replicas == 0
