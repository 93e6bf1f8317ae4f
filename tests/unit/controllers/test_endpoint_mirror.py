"""Endpoints written by hand are seen in slices, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.client.informer import Groups, Informer
from podling.controllers.endpoint_slices import MIRRORING_CONTROLLER, EndpointMirror, service_of
from podling.model.codec.json import to_data
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Endpoints, Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

PORTS = [{"name": "http", "port": 80}]
ADDRESS = {"ip": "192.0.2.1"}


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    of = cluster.informers.of
    await cluster.run(
        EndpointMirror(
            cluster.account("endpointslicemirroring-controller"),
            of(Service),
            of(Endpoints),
            of(EndpointSlice),
        )
    )
    return cluster


async def service(cluster: Cluster, **spec: Any) -> None:
    await cluster.make(Service, "web", spec={"ports": [{"port": 80}], **spec})


async def written(cluster: Cluster, *subsets: Any, **metadata: Any) -> None:
    await cluster.make(Endpoints, "web", metadata=metadata, subsets=list(subsets))


async def slices(cluster: Cluster) -> list[EndpointSlice]:
    await cluster.settle()
    return list((await cluster.client.list(EndpointSlice, "ns")).items)


async def test_addresses_are_mirrored(started: Cluster) -> None:
    await service(started)
    await written(
        started,
        {"addresses": [ADDRESS], "notReadyAddresses": [{"ip": "192.0.2.2"}], "ports": PORTS},
        labels={"app": "web"},
        annotations={"a": "b", "endpoints.kubernetes.io/over-capacity": "truncated"},
    )
    (found,) = await slices(started)
    assert found.metadata.labels == {
        "app": "web",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert found.metadata.annotations == {"a": "b"}
    assert (found.metadata.generate_name, found.metadata.owner_references[0].kind) == ("web-", "Endpoints")
    assert [(e.addresses, e.conditions.ready) for e in found.endpoints] == [
        (["192.0.2.1"], True),
        (["192.0.2.2"], False),
    ]
    assert to_data(found.ports) == [{"name": "http", "protocol": "TCP", "port": 80}]


async def test_a_slice_for_each_family_and_set_of_ports(started: Cluster) -> None:
    await service(started)
    await written(
        started,
        {"addresses": [ADDRESS, {"ip": "2001:db8::1"}], "ports": PORTS},
        {"addresses": [{"ip": "192.0.2.2"}], "ports": [{"name": "other", "port": 81}]},
    )
    found = sorted((one.address_type, one.ports[0].port) for one in await slices(started))
    assert found == [("IPv4", 80), ("IPv4", 81), ("IPv6", 80)]


async def test_changes_keep_the_slice_and_what_is_gone_goes(started: Cluster) -> None:
    await service(started)
    await written(started, {"addresses": [ADDRESS], "ports": PORTS})
    (before,) = await slices(started)
    subsets = [{"addresses": [{"ip": "192.0.2.9"}], "ports": PORTS}]
    await started.client.patch(Endpoints, "web", "ns", {"subsets": subsets})
    (after,) = await slices(started)
    assert (after.metadata.uid, after.endpoints[0].addresses) == (before.metadata.uid, ["192.0.2.9"])
    await started.client.delete(Endpoints, "web", "ns")
    assert await slices(started) == []


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        ({"selector": {"app": "a"}}, {}),
        ({}, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}),
        ({}, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}),
    ],
)
async def test_what_is_not_mirrored(started: Cluster, spec: Any, metadata: Any) -> None:
    await service(started, **spec)
    await written(started, {"addresses": [ADDRESS], "ports": PORTS}, **metadata)
    assert await slices(started) == []


async def test_endpoints_of_no_service_are_not(started: Cluster) -> None:
    await written(started, {"addresses": [ADDRESS], "ports": PORTS})
    assert await slices(started) == []


async def test_a_slice_that_is_not_seen_yet_is_not_made_again(cluster: Cluster) -> None:
    """The informer lags behind what was created: a second look finds nothing standing and must wait."""
    of = cluster.informers.of
    mirror = EndpointMirror(
        cluster.account("endpointslicemirroring-controller"), of(Service), of(Endpoints), of(EndpointSlice)
    )
    await cluster.run(mirror)
    await service(cluster)
    await written(cluster, {"addresses": [ADDRESS], "ports": PORTS})
    await cluster.see()
    await mirror.reconcile(("ns", "web"))
    blind = Informer(cluster.client, EndpointSlice)
    mirror._slices = Groups(blind, service_of(MIRRORING_CONTROLLER))
    mirror._created._informer = blind
    await mirror.reconcile(("ns", "web"))
    assert len((await cluster.client.list(EndpointSlice, "ns")).items) == 1
