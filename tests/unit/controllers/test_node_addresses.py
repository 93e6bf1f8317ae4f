"""R-SYS-2: each node gets a subnet for its pods, as by the kube-controller-manager."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.controllers.node_addresses import NodeAddresses, free_subnet
from podling.model.types.node import Node

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

CLUSTER, SERVICES = "10.64.0.0/22", "10.96.0.0/16"


async def give(cluster: Cluster, services: str) -> None:
    account, nodes = cluster.account("node-controller"), cluster.informers.of(Node)
    await cluster.run(NodeAddresses(account, nodes, cluster.events, CLUSTER, services))


@pytest.fixture
async def giving(cluster: Cluster) -> Cluster:
    await give(cluster, SERVICES)
    return cluster


async def node(cluster: Cluster, name: str, subnet: str = "") -> None:
    spec: dict[str, Any] = {"podCIDR": subnet} if subnet else {}
    await cluster.make(Node, name, "", spec=spec)
    await cluster.settle()


async def subnets(cluster: Cluster) -> dict[str, list[str]]:
    await cluster.settle()
    return {one.metadata.name: one.spec.pod_cidrs for one in (await cluster.client.list(Node)).items}


async def test_nodes_that_say_no_subnet_get_one_each(giving: Cluster) -> None:
    await node(giving, "own", "10.64.1.0/24")
    for name in ("a", "b"):
        await node(giving, name)
    assert await subnets(giving) == {"own": ["10.64.1.0/24"], "a": ["10.64.0.0/24"], "b": ["10.64.2.0/24"]}
    assert (await giving.client.get(Node, "a")).spec.pod_cidr == "10.64.0.0/24"


async def test_nodes_get_two_where_services_have_addresses_of_both_families(cluster: Cluster) -> None:
    await give(cluster, f"{SERVICES},fd00:96::/108")
    await node(cluster, "a")
    assert await subnets(cluster) == {"a": ["10.64.0.0/24", "fd70:6f64:6c69:4000::/64"]}


async def test_nodes_that_come_at_once_get_different_ones(giving: Cluster) -> None:
    for name in "abc":
        await giving.make(Node, name, "")
    assert sorted((await subnets(giving)).values()) == [["10.64.0.0/24"], ["10.64.1.0/24"], ["10.64.2.0/24"]]


async def test_a_node_waits_where_no_subnet_is_left_and_gets_that_of_one_that_leaves(giving: Cluster) -> None:
    for name in "abcde":
        await node(giving, name)
    assert (await subnets(giving))["e"] == []
    assert giving.events.said == ["CIDRNotAvailable: Node e status is now: CIDRNotAvailable"]
    await giving.client.delete(Node, "b")
    assert (await subnets(giving))["e"] == ["10.64.1.0/24"]


@given(st.lists(st.tuples(st.integers(0, 2**12 - 1), st.integers(20, 32)), max_size=30))
def test_a_subnet_overlaps_none_that_is_taken(places: list[tuple[int, int]]) -> None:
    base = int(IPv4Network("10.64.0.0/20").network_address)
    taken = [IPv4Network((base + number, mask), strict=False) for number, mask in places]
    found = free_subnet("10.64.0.0/20", taken)
    free = [
        one for one in IPv4Network("10.64.0.0/20").subnets(new_prefix=24) if not any(map(one.overlaps, taken))
    ]
    assert found == (str(free[0]) if free else "")
