"""Nodes whose kubelet is silent, and the taints that follow from their state."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from podling.client.workqueue import WorkQueue
from podling.controllers.nodes import USUAL, Monitoring, NodeLifecycle, is_given_up, readiness, taints
from podling.model.codec.json import from_data
from podling.model.time import rfc3339
from podling.model.types.coordination import Lease
from podling.model.types.node import Node
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

KEY = ("", "n")
NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}
READY = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}]}


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    await cluster.make(Node, "n", "", status=READY)
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.pod("p", node="n", status=running)
    await cluster.run(lifecycle(cluster, USUAL))
    return cluster


def lifecycle(cluster: Cluster, monitoring: Monitoring) -> NodeLifecycle:
    of, account = cluster.informers.of, cluster.account("node-controller")
    return NodeLifecycle(account, of(Node), of(Lease), of(Pod), cluster.events, cluster.clock, monitoring)


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


async def others(
    cluster: Cluster, *, zone: str = "", names: Iterable[str] = "m", status: Any = READY
) -> None:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    for name in names:
        await cluster.make(Node, name, "", metadata={"labels": labels}, status=status)
    await cluster.settle()


async def given_up(cluster: Cluster, seconds: float) -> str:
    """The names of the nodes whose pods are to be evicted, after so much time."""
    cluster.clock.move(seconds)
    for name in await cluster.names(Node):
        await cluster.reconcile(("", name))
    nodes = (await cluster.client.list(Node)).items
    return "".join(node.metadata.name for node in nodes if is_given_up(node))


def later_ready(cluster: Cluster) -> dict[str, Any]:
    """What its kubelet says now."""
    return {
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": rfc3339(cluster.clock.now())}]
    }


def shown(node: Node) -> set[str]:
    return {f"{taint.key.rpartition('/')[2]}:{taint.effect}" for taint in node.spec.taints}


async def test_a_silent_node_becomes_unknown_and_unreachable(started: Cluster) -> None:
    await others(started)
    assert shown(await later(started, 49)) == set()
    assert shown(await later(started, 1)) == {"unreachable:NoSchedule"}
    node = await later(started, 5)
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
        "RegisteredNode: Node m event: Registered Node m in Controller",
        "NodeNotReady: Node n status is now: NodeNotReady",
        "NodeNotReady: Node is not ready",
    ]


async def test_lost_nodes_of_a_zone_are_given_up_one_after_the_other(started: Cluster) -> None:
    await others(started, zone="z", names="abcd")
    await others(started, zone="z", names="xy", status=NOT_READY)
    assert await given_up(started, 4) == ""
    assert len(await given_up(started, 1)) == 1
    assert len(await given_up(started, 9)) == 1
    assert await given_up(started, 1) == "xy"


async def test_a_line_of_lost_nodes_costs_each_node_the_same(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first asks for its turn: were all to ask again each time, it would be half the square."""
    due: dict[Any, datetime] = {}

    def add_after(queue: WorkQueue[Any], key: Any, seconds: float) -> None:
        when = cluster.clock.now() + timedelta(seconds=seconds)
        due[key] = min(when, due.get(key, when))

    monkeypatch.setattr(WorkQueue, "add_after", add_after)
    lost = [f"lost-{number:02}" for number in range(30)]
    await cluster.run(lifecycle(cluster, Monitoring(grace=timedelta(days=1))))
    await others(cluster, zone="z", names=[f"well-{number}" for number in range(40)])
    await others(cluster, zone="z", names=lost, status=NOT_READY)
    order: list[str] = []
    asked = 0
    while len(order) < len(lost):
        key = min(due, key=due.__getitem__)
        cluster.clock.time = max(due.pop(key), cluster.clock.now())
        asked += 1
        await cluster.reconcile(key)
        taken = cluster.informers.of(Node).items()
        order += sorted({n.metadata.name for n in taken if is_given_up(n)} - {*order})
    assert order == lost
    assert asked <= 3 * len(lost)


async def test_who_leaves_the_line_keeps_nobody_waiting(started: Cluster) -> None:
    await others(started, zone="z", names="abcdefgh")
    await others(started, zone="z", names="uvwxyz", status=NOT_READY)
    assert await given_up(started, 5) == "u"
    # The next of them is ready again, is deleted, moves to another zone.
    await started.client.patch(Node, "v", "", {"status": READY}, subresource="status")
    await started.client.delete(Node, "w", "")
    labels = {"topology.kubernetes.io/zone": "other"}
    await started.client.patch(Node, "x", "", {"metadata": {"labels": labels}})
    await started.settle()
    assert await given_up(started, 10) == "uxy"
    assert await given_up(started, 10) == "uxyz"


async def test_pods_stay_while_most_of_a_zone_is_lost(started: Cluster) -> None:
    await others(started, zone="z", names="abc", status=NOT_READY)
    await others(started, zone="z", names="d")
    assert await given_up(started, 40) == ""
    # That one is there again makes the others those that are lost.
    await started.client.patch(Node, "c", "", {"status": READY}, subresource="status")
    await started.settle()
    assert await given_up(started, 0) == ""
    assert len(await given_up(started, 10)) == 1


async def test_no_node_stays_given_up_when_all_are_lost(started: Cluster) -> None:
    await others(started, names="m", status=NOT_READY)
    assert await given_up(started, 5) == "m"
    # The kubelet of the other is silent.
    assert await given_up(started, 45) == ""
    assert await given_up(started, 100) == ""
    await started.client.patch(Node, "n", "", {"status": later_ready(started)}, subresource="status")
    await started.settle()
    assert await given_up(started, 0) == ""
    assert await given_up(started, 10) == "m"


async def test_nodes_get_their_time_when_some_are_heard_again(started: Cluster) -> None:
    """Whatever kept them from being heard may have kept their leases, too."""
    await others(started, names="m", status=NOT_READY)
    await started.client.patch(Node, "n", "", {"status": NOT_READY}, subresource="status")
    await started.settle()
    cold = {"conditions": [{"type": "Ready", "status": "True"}]}
    started.clock.move(49)
    await started.client.patch(Node, "m", "", {"status": cold}, subresource="status")
    await started.client.patch(Node, "n", "", {"status": cold}, subresource="status")
    await started.settle()
    assert await given_up(started, 49) == ""
    assert {readiness(node) for node in (await started.client.list(Node)).items} == {"True"}
    await given_up(started, 1)
    assert {readiness(node) for node in (await started.client.list(Node)).items} == {"Unknown"}


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
        f"{t.key.rpartition('/')[2]}:{t.effect}" for t in taints(node, "2026-01-01T00:00:00Z", given_up=True)
    ] == expected
