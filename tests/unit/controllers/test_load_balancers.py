"""Services of type LoadBalancer have the addresses of nodes, each address and port for one service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.all import load_balancers
from podling.controllers.load_balancers import EXCLUDED, FINALIZER, change
from podling.model.codec.json import from_data
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node
from podling.model.types.service import Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

NODE_1, NODE_2 = "192.0.2.1", "192.0.2.2"
TAKEN = set[tuple[str, str, int]]()


@pytest.fixture
async def balanced(cluster: Cluster) -> Cluster:
    """With one node."""
    TAKEN.clear()
    await node(cluster, "n1", NODE_1)
    await cluster.run(
        load_balancers(cluster.account, cluster.informers, cluster.events, lambda *place: place in TAKEN)
    )
    return cluster


async def node(cluster: Cluster, name: str, address: str, *labels: str, ready: bool = True) -> None:
    status = {
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}],
    }
    await cluster.make(Node, name, "", metadata={"labels": dict.fromkeys(labels, "")}, status=status)


async def balance(cluster: Cluster, name: str, port: int = 80, **spec: Any) -> Service:
    """What it looks like once it has what it can have."""
    ports = [{"name": "p", "port": port, "protocol": "TCP"}]
    await cluster.make(Service, name, spec={"type": "LoadBalancer", "ports": ports, **spec})
    await cluster.settle()
    return await read(cluster, name)


async def read(cluster: Cluster, name: str) -> Service:
    return await cluster.client.get(Service, name, "ns")


def has(service: Service) -> list[tuple[str, str | None]]:
    return [(one.ip, one.ip_mode) for one in service.status.load_balancer.ingress]


async def test_a_service_gets_the_nodes_address_and_gives_it_back(balanced: Cluster) -> None:
    made = await balance(balanced, "web")
    assert has(made) == [(NODE_1, "VIP")]
    assert made.metadata.finalizers == [FINALIZER]
    await balanced.client.patch(Service, "web", "ns", {"spec": {"type": "ClusterIP"}})
    await balanced.settle()
    after = await read(balanced, "web")
    assert (has(after), after.metadata.finalizers) == ([], [])
    assert balanced.events.said == [
        "EnsuringLoadBalancer: Ensuring load balancer",
        "EnsuredLoadBalancer: Ensured load balancer",
        "Type: LoadBalancer -> ClusterIP",
        "DeletingLoadBalancer: Deleting load balancer",
        "DeletedLoadBalancer: Deleted load balancer",
    ]


async def test_a_service_can_be_deleted(balanced: Cluster) -> None:
    await balance(balanced, "web")
    await balanced.client.delete(Service, "web", "ns")
    await balanced.settle()
    assert await balanced.names(Service, "ns") == []


async def test_another_class_is_anothers(balanced: Cluster) -> None:
    made = await balance(balanced, "web", loadBalancerClass="example.com/lb")
    assert (has(made), made.metadata.finalizers, balanced.events.said) == ([], [], [])


async def test_of_two_that_want_a_port_the_first_has_it_until_it_goes(balanced: Cluster) -> None:
    await balance(balanced, "a")
    assert has(await balance(balanced, "b")) == []
    assert has(await balance(balanced, "c", 81)) == [(NODE_1, "VIP")]
    why = f"TCP port 80 of {NODE_1} is that of service ns/a"
    said = f"SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: {why}"
    assert balanced.events.said.count(said) == 1
    await balanced.client.delete(Service, "a", "ns")
    await balanced.settle()
    assert has(await read(balanced, "b")) == [(NODE_1, "VIP")]


async def test_what_a_service_has_stays_its_own_after_a_restart(cluster: Cluster) -> None:
    """Also if another that waits is looked at first."""
    await node(cluster, "n1", NODE_1)
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    await cluster.make(Service, "a", spec=spec)
    ingress = [{"ip": NODE_1, "ipMode": "VIP"}]
    await cluster.make(Service, "b", spec=spec, status={"loadBalancer": {"ingress": ingress}})
    # The port is that of a process which came later: what is had is not asked for.
    taken = load_balancers(cluster.account, cluster.informers, cluster.events, lambda *_: True)
    await cluster.run(taken)
    assert (has(await read(cluster, "a")), has(await read(cluster, "b"))) == ([], [(NODE_1, "VIP")])


async def test_the_port_of_a_process_is_not_taken(balanced: Cluster) -> None:
    TAKEN.add(("TCP", NODE_1, 22))
    assert has(await balance(balanced, "ssh", 22)) == []
    assert f"TCP port 22 of {NODE_1} is in use by a process there" in balanced.events.said[0]
    TAKEN.clear()
    await balanced.reconcile(("ns", "ssh"))
    assert has(await read(balanced, "ssh")) == [(NODE_1, "VIP")]


async def test_nodes_that_come_and_go(balanced: Cluster) -> None:
    await balance(balanced, "web")
    await node(balanced, "n2", NODE_2)
    await node(balanced, "n3", "192.0.2.3", ready=False)
    await node(balanced, "n4", "192.0.2.4", EXCLUDED)
    await balanced.settle()
    assert has(await read(balanced, "web")) == [(NODE_1, "VIP"), (NODE_2, "VIP")]
    for name in ("n1", "n2"):
        await balanced.client.delete(Node, name)
        await balanced.settle()
    # The last address stays, as a cloud's balancer would.
    assert has(await read(balanced, "web")) == [(NODE_2, "VIP")]
    assert balanced.events.said[-1] == (
        "UnAvailableLoadBalancer: There are no available nodes for LoadBalancer"
    )


async def test_local_is_at_the_nodes_of_its_endpoints(balanced: Cluster) -> None:
    await node(balanced, "n2", NODE_2)
    made = await balance(balanced, "web", externalTrafficPolicy="Local")
    assert has(made) == [(NODE_1, "VIP"), (NODE_2, "VIP")]
    endpoint = {"addresses": ["10.0.0.1"], "nodeName": "n2", "conditions": {"ready": True}}
    labels = {"kubernetes.io/service-name": "web"}
    slice_: dict[str, Any] = {"metadata": {"labels": labels}, "addressType": "IPv4", "endpoints": [endpoint]}
    await balanced.make(EndpointSlice, "web-1", **slice_)
    await balanced.settle()
    assert has(await read(balanced, "web")) == [(NODE_2, "VIP")]


async def test_an_address_may_be_asked_for(balanced: Cluster) -> None:
    await node(balanced, "n2", NODE_2)
    assert has(await balance(balanced, "a", loadBalancerIP=NODE_2)) == [(NODE_2, "VIP")]
    assert has(await balance(balanced, "b", loadBalancerIP="192.0.2.9")) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"loadBalancerSourceRanges": ["10.0.0.0/8", "192.0.2.0/24"]}, {}, "[10.0.0.0/8 192.0.2.0/24] -> []"),
        ({"loadBalancerIP": NODE_1}, {"loadBalancerIP": NODE_2}, f"{NODE_1} -> {NODE_2}"),
        ({"externalTrafficPolicy": "Cluster"}, {"externalTrafficPolicy": "Local"}, "Cluster -> Local"),
        ({"healthCheckNodePort": 30000}, {"healthCheckNodePort": 30001}, "30000 -> 30001"),
        ({"ports": [{"port": 1}]}, {"ports": [{"port": 2}]}, None),
    ],
)
def test_changes_are_told(before: dict[str, Any], after: dict[str, Any], said: str | None) -> None:
    old, new = (from_data({"spec": {"type": "LoadBalancer", **one}}, Service) for one in (before, after))
    told = change(old, new)
    assert (told and told[1]) == said
