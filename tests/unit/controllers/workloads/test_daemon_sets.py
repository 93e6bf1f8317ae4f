"""A DaemonSet has a pod on each node that suits, and rolls them as fast as it may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podling.controllers.workloads.claims import Owned
from podling.controllers.workloads.daemon_sets import DaemonSets
from podling.controllers.workloads.daemons import target
from podling.model.types.apps import ControllerRevision, DaemonSet
from podling.model.types.node import Node
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"app": "each"}
KEY = ("ns", "each")
NODES = ("a", "b", "c")


def template(image: str = "one", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": image}], **spec}}


async def node(cluster: Cluster, name: str, **body: Any) -> None:
    """One that is ready: without the taint that every new node has."""
    await cluster.make(Node, name, "", **body)
    await cluster.client.patch(Node, name, "", {"spec": {"taints": None}})


async def begin(cluster: Cluster, **spec: Any) -> DaemonSet:
    for name in NODES:
        await node(cluster, name)
    pods, revisions = cluster.informers.of(Pod), cluster.informers.of(ControllerRevision)
    await cluster.run(
        DaemonSets(
            cluster.account("daemon-set-controller"),
            cluster.informers.of(DaemonSet),
            cluster.informers.of(Node),
            pods,
            Owned(pods),
            revisions,
            Owned(revisions),
            cluster.events,
            cluster.clock,
        )
    )
    body = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    made = await cluster.make(DaemonSet, "each", spec=body)
    await cluster.settle()
    return made


async def ready(cluster: Cluster) -> None:
    """All that are there, bound as the scheduler would, and nothing that follows from it."""
    since = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    for pod in (await cluster.client.list(Pod, "ns")).items:
        if not pod.status.conditions:
            said = {"status": {"phase": "Running", "conditions": [condition]}}
            await cluster.client.patch(Pod, pod.metadata.name, "ns", said, subresource="status")
    await cluster.settle()


async def change(cluster: Cluster, **spec: Any) -> None:
    await cluster.client.patch(DaemonSet, "each", "ns", {"spec": spec})
    await cluster.settle()


async def pods(cluster: Cluster) -> list[tuple[str | None, str]]:
    """The node and the image of each."""
    found = (await cluster.client.list(Pod, "ns")).items
    return sorted((target(pod) or "", pod.spec.containers[0].image) for pod in found)


async def counts(cluster: Cluster) -> tuple[int, int, int, int, int]:
    status = (await cluster.client.get(DaemonSet, "each", "ns")).status
    return (
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_misscheduled,
        status.updated_number_scheduled,
        status.number_available,
    )


async def test_each_node_gets_one_pod(cluster: Cluster) -> None:
    await begin(cluster)
    assert await pods(cluster) == [(name, "one") for name in NODES]
    (revision,) = (await cluster.client.list(ControllerRevision, "ns")).items
    first = (await cluster.client.list(Pod, "ns")).items[0]
    assert first.metadata.labels == {
        **LABELS,
        "controller-revision-hash": revision.metadata.labels["controller-revision-hash"],
        "pod-template-generation": "1",
    }
    assert [(one.key, one.effect) for one in first.spec.tolerations] == [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]
    await ready(cluster)
    assert await counts(cluster) == (3, 3, 0, 3, 3)


async def test_nodes_come_change_and_go(cluster: Cluster) -> None:
    await begin(cluster, template=template(nodeSelector={"disk": "ssd"}))
    assert await pods(cluster) == []
    await cluster.client.patch(Node, "b", "", {"metadata": {"labels": {"disk": "ssd"}}})
    await node(cluster, "d", metadata={"labels": {"disk": "ssd"}})
    await cluster.settle()
    assert await pods(cluster) == [("b", "one"), ("d", "one")]
    await ready(cluster)
    await cluster.client.delete(Node, "d", "")
    await cluster.client.patch(Node, "b", "", {"metadata": {"labels": {"disk": None}}})
    await cluster.settle()
    assert await pods(cluster) == []


async def test_a_taint_keeps_pods_away_and_sends_away_what_does_not_tolerate_it(cluster: Cluster) -> None:
    await begin(cluster)
    await ready(cluster)
    taint = {"key": "only", "value": "x", "effect": "NoSchedule"}
    await cluster.client.patch(Node, "a", "", {"spec": {"taints": [taint]}})
    await cluster.settle()
    assert len(await pods(cluster)) == 3 and await counts(cluster) == (2, 2, 1, 2, 2)
    await cluster.client.patch(Node, "a", "", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
    await cluster.settle()
    assert await pods(cluster) == [("b", "one"), ("c", "one")]


async def test_it_rolls_one_node_after_another(cluster: Cluster) -> None:
    await begin(cluster)
    await ready(cluster)
    await change(cluster, template=template("two"))
    assert await pods(cluster) == [("a", "two"), ("b", "one"), ("c", "one")]
    await ready(cluster)
    assert await pods(cluster) == [("a", "two"), ("b", "two"), ("c", "one")]
    assert await counts(cluster) == (3, 3, 0, 2, 2)
    await change(cluster, template=template("one"))
    await ready(cluster)
    await ready(cluster)
    await ready(cluster)
    assert await pods(cluster) == [(name, "one") for name in NODES]
    revisions = (await cluster.client.list(ControllerRevision, "ns")).items
    assert sorted(one.revision for one in revisions) == [2, 3]


async def test_with_surge_the_old_pod_goes_when_the_new_one_is_available(cluster: Cluster) -> None:
    rolling = {"maxSurge": 2, "maxUnavailable": 0}
    await begin(cluster, updateStrategy={"rollingUpdate": rolling}, minReadySeconds=5)
    await ready(cluster)
    cluster.clock.move(5)
    await cluster.reconcile(KEY)
    await change(cluster, template=template("two"))
    assert await pods(cluster) == [
        ("a", "one"),
        ("a", "two"),
        ("b", "one"),
        ("b", "two"),
        ("c", "one"),
    ]
    await ready(cluster)
    assert len(await pods(cluster)) == 5
    cluster.clock.move(5)
    await cluster.reconcile(KEY)
    assert await pods(cluster) == [("a", "two"), ("b", "two"), ("c", "one"), ("c", "two")]


async def test_a_failed_pod_is_replaced_ever_later(cluster: Cluster) -> None:
    await begin(cluster)

    async def fail() -> str:
        (pod,) = [one for one in (await cluster.client.list(Pod, "ns")).items if target(one) == "a"]
        failed = {"status": {"phase": "Failed"}}
        await cluster.client.patch(Pod, pod.metadata.name, "ns", failed, subresource="status")
        await cluster.settle()
        return pod.metadata.name

    first = await fail()
    assert first not in await cluster.names(Pod, "ns")
    warned = f"FailedDaemonPod: Found failed daemon pod ns/{first} on node a, will try to kill it"
    assert warned in cluster.events.said
    second = await fail()
    assert second in await cluster.names(Pod, "ns")
    cluster.clock.move(1)
    await cluster.reconcile(KEY)
    assert second not in await cluster.names(Pod, "ns") and len(await pods(cluster)) == 3


async def test_on_delete_a_pod_is_new_when_it_was_deleted(cluster: Cluster) -> None:
    await begin(cluster, updateStrategy={"type": "OnDelete", "rollingUpdate": None})
    await change(cluster, template=template("two"))
    (first, *_) = (await cluster.client.list(Pod, "ns")).items
    await cluster.client.delete(Pod, first.metadata.name, "ns")
    await cluster.settle()
    assert sorted(image for _, image in await pods(cluster)) == ["one", "one", "two"]


async def test_orphans_are_adopted(cluster: Cluster) -> None:
    await begin(cluster)
    before = await cluster.names(Pod, "ns")
    for pod in before:
        await cluster.client.patch(Pod, pod, "ns", {"metadata": {"ownerReferences": []}})
    (revision,) = await cluster.names(ControllerRevision, "ns")
    await cluster.client.patch(ControllerRevision, revision, "ns", {"metadata": {"ownerReferences": []}})
    await cluster.settle()
    assert await cluster.names(Pod, "ns") == before
    (same,) = (await cluster.client.list(ControllerRevision, "ns")).items
    assert same.metadata.name == revision and len(same.metadata.owner_references) == 1
