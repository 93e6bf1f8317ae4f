"""Ranges of cluster IPs come and go, and IPAddresses are repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.addresses import DEFAULT, FINALIZER, AddressRepair, DefaultRange, ServiceRanges
from podling.model.types.networking import IPAddress, ServiceCIDR
from podling.model.types.service import Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {
    "ipaddress.kubernetes.io/ip-family": "IPv4",
    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
}
ADDRESS = "10.96.0.7"


async def service(cluster: Cluster, name: str = "s", address: str = ADDRESS) -> Service:
    return await cluster.make(Service, name, spec={"clusterIP": address, "ports": [{"port": 80}]})


async def address(cluster: Cluster, name: str, labels: Any = LABELS, parent: Any = None) -> None:
    reference = {"resource": "services", "namespace": "ns", "name": "s", **(parent or {})}
    await cluster.make(IPAddress, name, "", metadata={"labels": labels}, spec={"parentRef": reference})


async def range_(cluster: Cluster, name: str, *cidrs: str) -> None:
    await cluster.make(ServiceCIDR, name, "", spec={"cidrs": list(cidrs)})


async def ready(cluster: Cluster, name: str) -> list[Any]:
    found = await cluster.client.get(ServiceCIDR, name)
    return [found.metadata.finalizers, *((one.status, one.reason) for one in found.status.conditions)]


def service_ranges(cluster: Cluster) -> ServiceRanges:
    of = cluster.informers.of
    return ServiceRanges(
        cluster.account("service-cidrs-controller"), of(ServiceCIDR), of(IPAddress), cluster.clock
    )


def repair(cluster: Cluster) -> AddressRepair:
    of = cluster.informers.of
    informers = of(Service), of(IPAddress), of(ServiceCIDR)
    return AddressRepair(cluster.client, *informers, cluster.events, cluster.clock)


async def test_the_default_range_is_made_and_made_again(cluster: Cluster) -> None:
    await cluster.client.delete(ServiceCIDR, DEFAULT)
    ranges = cluster.informers.of(ServiceCIDR)
    await cluster.run(DefaultRange(cluster.client, ranges, cluster.clock, "10.100.0.0/16"))
    for _ in range(2):
        made = await cluster.client.get(ServiceCIDR, DEFAULT)
        assert made.spec.cidrs == ["10.100.0.0/16"]
        assert await ready(cluster, DEFAULT) == [[], ("True", "")]
        await cluster.client.delete(ServiceCIDR, DEFAULT)
        await cluster.settle()


async def test_a_default_range_of_before_stays(cluster: Cluster) -> None:
    ranges = cluster.informers.of(ServiceCIDR)
    await cluster.run(DefaultRange(cluster.client, ranges, cluster.clock, "10.100.0.0/16"))
    assert await ready(cluster, DEFAULT) == [[]]


async def test_a_default_range_gets_a_second_family(cluster: Cluster) -> None:
    both = ["10.96.0.0/16", "fd00::/112"]
    ranges = cluster.informers.of(ServiceCIDR)
    await cluster.run(DefaultRange(cluster.client, ranges, cluster.clock, ",".join(both)))
    assert (await cluster.client.get(ServiceCIDR, DEFAULT)).spec.cidrs == both
    assert await ready(cluster, DEFAULT) == [[], ("True", "")]


async def test_a_range_is_held_while_a_service_has_an_address_of_it_alone(cluster: Cluster) -> None:
    await range_(cluster, "r", "10.1.0.0/24")
    controller = service_ranges(cluster)
    await cluster.run(controller)
    assert await ready(cluster, "r") == [[FINALIZER], ("True", "")]
    await service(cluster, "s", "10.1.0.7")
    await cluster.client.delete(ServiceCIDR, "r")
    await cluster.settle()
    assert await ready(cluster, "r") == [[FINALIZER], ("False", "Terminating")]
    await cluster.client.delete(Service, "s", "ns")
    await cluster.settle()
    assert "r" in await cluster.names(ServiceCIDR)
    cluster.clock.move(11)
    await cluster.reconcile(("", "r"))
    assert await cluster.names(ServiceCIDR) == [DEFAULT]


@pytest.mark.parametrize("other", [["10.1.0.0/24"], ["10.0.0.0/8"], ["10.1.0.0/16", "fd00::/64"]])
async def test_a_range_within_another_may_go(cluster: Cluster, other: list[str]) -> None:
    await range_(cluster, "r", "10.1.0.0/24")
    await cluster.run(service_ranges(cluster))
    await service(cluster, "s", "10.1.0.7")
    await range_(cluster, "other", *other)
    await cluster.settle()
    await cluster.client.delete(ServiceCIDR, "r")
    cluster.clock.move(11)
    await cluster.settle()
    assert "r" not in await cluster.names(ServiceCIDR)


@pytest.mark.parametrize("other", [["10.1.0.0/28"], ["10.2.0.0/16"], ["fd00::/8"]])
async def test_it_may_not_if_the_other_has_not_all_its_addresses(cluster: Cluster, other: list[str]) -> None:
    await range_(cluster, "r", "10.1.0.0/24")
    await cluster.run(service_ranges(cluster))
    await service(cluster, "s", "10.1.0.77")
    await range_(cluster, "other", *other)
    await cluster.settle()
    await cluster.client.delete(ServiceCIDR, "r")
    cluster.clock.move(11)
    await cluster.settle()
    assert await ready(cluster, "r") == [[FINALIZER], ("False", "Terminating")]


async def test_a_healthy_cluster_has_nothing_to_repair(cluster: Cluster) -> None:
    await cluster.run(repair(cluster))
    for i in range(3):
        await service(cluster, f"s{i}", f"10.96.0.{i + 7}")
    await cluster.client.delete(Service, "s1", "ns")
    await cluster.settle()
    assert cluster.events.said == []
    assert await cluster.names(IPAddress) == [ADDRESS, "10.96.0.9"]


async def test_a_lost_address_is_made_again(cluster: Cluster) -> None:
    await service(cluster)
    await cluster.run(repair(cluster))
    await cluster.client.delete(IPAddress, ADDRESS)
    await cluster.settle()
    assert await cluster.names(IPAddress) == [ADDRESS]
    assert cluster.events.said == [
        "ClusterIPNotAllocated: Cluster IP [IPv4]: 10.96.0.7 is not allocated; repairing"
    ]


@pytest.mark.parametrize("label", LABELS)
async def test_labels_of_the_allocator_come_back(cluster: Cluster, label: str) -> None:
    await service(cluster)
    await cluster.run(repair(cluster))
    await cluster.client.patch(IPAddress, ADDRESS, "", {"metadata": {"labels": {label: None}}})
    await cluster.settle()
    assert (await cluster.client.get(IPAddress, ADDRESS)).metadata.labels == LABELS
    assert cluster.events.said == []


WRONG = [
    (
        {"resource": "pods", "name": "x"},
        "IPAddressNotAllocated: IPAddress 10.96.0.7 appears to have been modified, not referencing a Service "
        "&ParentReference{Group:,Resource:pods,Namespace:ns,Name:x,}: cleaning up",
    ),
    (
        {"name": "t"},
        "IPAddressWrongReference: IPAddress: 10.96.0.7 for Service ns/t has a wrong reference; cleaning up",
    ),
]


@pytest.mark.parametrize(("parent", "said"), WRONG)
async def test_an_address_given_to_another_comes_back(cluster: Cluster, parent: Any, said: str) -> None:
    await service(cluster)
    await service(cluster, "t", "10.96.0.8")
    await cluster.client.delete(IPAddress, ADDRESS)
    await address(cluster, ADDRESS, parent=parent)
    await cluster.run(repair(cluster))
    found = await cluster.client.get(IPAddress, ADDRESS)
    assert found.spec.parent_ref is not None and found.spec.parent_ref.name == "s"
    told = "the ClusterIP [IPv4]: 10.96.0.7 for Service ns/s has a wrong reference; repairing"
    assert cluster.events.said in ([f"ClusterIPNotAllocated: {told}"], [said])


async def test_an_address_of_no_service_goes_after_a_minute(cluster: Cluster) -> None:
    await cluster.run(repair(cluster))
    await address(cluster, ADDRESS)
    await address(cluster, "10.96.0.8", {})
    cluster.clock.move(59)
    await cluster.reconcile(("", ADDRESS))
    assert await cluster.names(IPAddress) == [ADDRESS, "10.96.0.8"]
    cluster.clock.move(2)
    await cluster.reconcile(("", ADDRESS))
    assert await cluster.names(IPAddress) == ["10.96.0.8"]
    said = "IPAddressNotAllocated: IPAddress: 10.96.0.7 for Service ns/s appears to have leaked: cleaning up"
    assert cluster.events.said == [said]


async def test_an_address_of_no_range_is_told_of(cluster: Cluster) -> None:
    await range_(cluster, "r", "10.1.0.0/24")
    await service(cluster, "s", "10.1.0.7")
    await cluster.client.delete(ServiceCIDR, "r")
    await cluster.run(repair(cluster))
    assert cluster.events.said == [
        "ClusterIPOutOfRange: Cluster IP [IPv4]: 10.1.0.7 is not within any configured Service CIDR; "
        "please recreate service"
    ]
