"""Pods nobody else will remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.controllers.garbage import SWEEP, PodGC
from podling.model.types.node import Node
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


async def collector(cluster: Cluster, threshold: int = 100) -> None:
    of = cluster.informers.of
    await cluster.run(
        PodGC(cluster.account("pod-garbage-collector"), of(Node), of(Pod), cluster.clock, threshold)
    )


async def test_pods_of_a_node_that_is_gone(cluster: Cluster) -> None:
    await cluster.make(Node, "n", "")
    await cluster.pod("stays", node="n")
    await cluster.pod("lost", node="elsewhere")
    await collector(cluster)
    assert await cluster.names(Pod, "ns") == ["lost", "stays"]
    for name in ("lost", "stays"):
        await cluster.reconcile(("ns", name))
    assert await cluster.names(Pod, "ns") == ["stays"]


async def test_a_pod_deleted_before_it_had_a_node(cluster: Cluster) -> None:
    held = {"finalizers": ["x.io/hold"]}
    await cluster.pod("p", metadata=held)
    await collector(cluster)
    await cluster.client.delete(Pod, "p", "ns")
    await cluster.settle()
    await cluster.client.patch(Pod, "p", "ns", {"metadata": {"finalizers": None}})
    assert await cluster.names(Pod, "ns") == []


@pytest.mark.parametrize("taint_first", [True, False])
async def test_pods_that_are_being_deleted_on_a_node_that_is_off(cluster: Cluster, taint_first: bool) -> None:
    """Not on one that is ready, whatever is said of it."""
    off = {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}
    await cluster.make(Node, "n", "", status={"conditions": [{"type": "Ready", "status": "True"}]})
    await cluster.pod("stays", node="n")
    await cluster.pod("p", node="n")
    await cluster.pod("held", node="n", metadata={"finalizers": ["x.io/hold"]})
    await collector(cluster)
    if taint_first:
        await cluster.client.patch(Node, "n", "", off)
    for name in ("p", "held"):
        await cluster.client.delete(Pod, name, "ns")
    await cluster.settle()
    assert await cluster.names(Pod, "ns") == ["held", "p", "stays"]
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    await cluster.client.patch(Node, "n", "", unknown, subresource="status")
    if not taint_first:
        await cluster.client.patch(Node, "n", "", off)
    await cluster.settle()
    assert await cluster.names(Pod, "ns") == ["held", "stays"]
    assert (await cluster.client.get(Pod, "held", "ns")).status.phase == "Failed"


async def test_the_oldest_of_too_many_that_are_over_go(cluster: Cluster) -> None:
    await collector(cluster, threshold=2)
    for name in ("c", "b", "a"):
        cluster.clock.move(1)
        await cluster.pod(name, node="n", status={"phase": "Succeeded"})
    await cluster.settle()
    assert await cluster.names(Pod, "ns") == ["a", "b"]
    await cluster.reconcile(SWEEP)
    assert await cluster.names(Pod, "ns") == ["a", "b"]
