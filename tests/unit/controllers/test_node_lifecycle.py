"""Nodes whose kubelet is silent, and the taints that follow from their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.nodes import NodeLifecycle, taints
from podling.model.codec.json import from_data
from podling.model.types.coordination import Lease
from podling.model.types.node import Node
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

KEY = ("", "n")
READY = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}]}


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    await cluster.make(Node, "n", "", status=READY)
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.pod("p", node="n", status=running)
    of = cluster.informers.of
    await cluster.run(
        NodeLifecycle(
            cluster.account("node-controller"), of(Node), of(Lease), of(Pod), cluster.events, cluster.clock
        )
    )
    return cluster


async def renew(cluster: Cluster) -> None:
    spec = {"renewTime": f"{cluster.clock.now().replace(tzinfo=None).isoformat(timespec='microseconds')}Z"}
    if await cluster.names(Lease, "kube-node-lease"):
        await cluster.client.patch(Lease, "n", "kube-node-lease", {"spec": spec})
    else:
        await cluster.make(Lease, "n", "kube-node-lease", spec=spec)
    await cluster.settle()


async def later(cluster: Cluster, seconds: float) -> Node:
    cluster.clock.move(seconds)
    await cluster.reconcile(KEY)
    node: Node = await cluster.client.get(Node, "n")
    return node


def shown(node: Node) -> set[str]:
    return {f"{taint.key.rpartition('/')[2]}:{taint.effect}" for taint in node.spec.taints}


async def test_a_silent_node_becomes_unknown_and_unreachable(started: Cluster) -> None:
    assert shown(await later(started, 49)) == set()
    node = await later(started, 1)
    (ready, *_) = node.status.conditions
    assert (ready.status, ready.reason, ready.message) == (
        "Unknown",
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
    )
    assert shown(node) == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    pod = await started.client.get(Pod, "p", "ns")
    assert pod.status.conditions[0].status == "False"
    assert started.events.said == [
        "RegisteredNode: Node n event: Registered Node n in Controller",
        "NodeNotReady: Node n status is now: NodeNotReady",
        "NodeNotReady: Node is not ready",
    ]


async def test_a_node_that_is_gone_is_told_once(started: Cluster) -> None:
    for _ in range(2):
        await started.client.delete(Node, "n", "")
        await started.settle()
        await started.make(Node, "n", "", status=READY)
        await started.settle()
    assert [one.partition(":")[0] for one in started.events.said] == [
        "RegisteredNode",
        *("RemovingNode", "RegisteredNode") * 2,
    ]


async def test_older_names_of_labels_follow_the_newer(started: Cluster) -> None:
    await started.client.patch(Node, "n", "", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
    await started.settle()
    labels = (await started.client.get(Node, "n")).metadata.labels
    assert labels == {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}


async def test_a_renewed_lease_keeps_it(started: Cluster) -> None:
    for _ in range(5):
        await renew(started)
        assert shown(await later(started, 30)) == set()


async def test_it_comes_back_when_the_kubelet_does(started: Cluster) -> None:
    await later(started, 41)
    await renew(started)
    await started.client.patch(Node, "n", "", {"status": READY}, subresource="status")
    await started.settle()
    assert shown(await started.client.get(Node, "n")) == set()


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        ({"conditions": [{"type": "Ready", "status": "False"}]}, {},
         ["not-ready:NoSchedule", "not-ready:NoExecute"]),
        ({"conditions": [{"type": "MemoryPressure", "status": "True"}]}, {}, ["memory-pressure:NoSchedule"]),
        ({}, {"unschedulable": True}, ["unschedulable:NoSchedule"]),
        ({}, {"taints": [{"key": "mine", "effect": "NoExecute"}]}, ["mine:NoExecute"]),
        (READY, {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}, []),
    ],
)  # fmt: skip
def test_taints(status: Any, spec: Any, expected: list[str]) -> None:
    node = from_data({"status": status, "spec": spec}, Node)
    assert [
        f"{t.key.rpartition('/')[2]}:{t.effect}" for t in taints(node, "2026-01-01T00:00:00Z")
    ] == expected
