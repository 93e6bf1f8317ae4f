"""What every cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.system import KubernetesService, SystemNamespaces, SystemPriorityClasses
from podling.model.types.core import Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.networking import ServiceCIDR
from podling.model.types.scheduling import PriorityClass
from podling.model.types.service import Endpoints, Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


def kubernetes_service(cluster: Cluster, host: str, port: int) -> KubernetesService:
    of = cluster.informers.of
    informers = of(Namespace), of(Service), of(ServiceCIDR)
    return KubernetesService(cluster.client, *informers, host, port, "10.96.0.0/16")


async def test_the_system_classes(cluster: Cluster) -> None:
    await cluster.run(SystemPriorityClasses(cluster.client))
    classes = (await cluster.client.list(PriorityClass)).items
    assert {one.metadata.name: one.value for one in classes} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }
    await cluster.run(SystemPriorityClasses(cluster.client))


async def test_the_service_of_the_api_server(cluster: Cluster) -> None:
    await cluster.run(kubernetes_service(cluster, "192.0.2.1", 6443))
    service = await cluster.client.get(Service, "kubernetes", "default")
    assert service.spec.cluster_ip == "10.96.0.1"
    (subset,) = (await cluster.client.get(Endpoints, "kubernetes", "default")).subsets
    assert ([a.ip for a in subset.addresses], [p.port for p in subset.ports]) == (["192.0.2.1"], [6443])
    slice = await cluster.client.get(EndpointSlice, "kubernetes", "default")
    assert slice.endpoints[0].addresses == ["192.0.2.1"]


async def test_it_comes_back_and_moves_with_the_server(cluster: Cluster) -> None:
    await cluster.run(kubernetes_service(cluster, "192.0.2.1", 6443))
    await cluster.client.delete(Service, "kubernetes", "default")
    await cluster.settle()
    assert await cluster.names(Service, "default") == ["kubernetes"]
    await cluster.run(kubernetes_service(cluster, "192.0.2.2", 6443))
    (subset,) = (await cluster.client.get(Endpoints, "kubernetes", "default")).subsets
    assert [address.ip for address in subset.addresses] == ["192.0.2.2"]


@pytest.mark.parametrize("changed", [{"type": "NodePort"}, {"ports": [{"name": "https", "port": 8443}]}])
async def test_what_was_written_into_the_service_is_put_right(cluster: Cluster, changed: Any) -> None:
    """An earlier server's port, or anybody's change."""
    await cluster.run(kubernetes_service(cluster, "192.0.2.1", 6443))
    before = await cluster.client.get(Service, "kubernetes", "default")
    await cluster.client.patch(Service, "kubernetes", "default", {"spec": changed})
    await cluster.settle()
    assert (await cluster.client.get(Service, "kubernetes", "default")).spec == before.spec


async def test_the_service_follows_the_port_of_the_server(cluster: Cluster) -> None:
    await cluster.run(SystemNamespaces(cluster.client, cluster.informers.of(Namespace)))
    stale = {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]}
    await cluster.make(Service, "kubernetes", "default", spec=stale)
    await cluster.run(kubernetes_service(cluster, "192.0.2.1", 7443))
    (port,) = (await cluster.client.get(Service, "kubernetes", "default")).spec.ports
    assert (port.port, port.target_port) == (443, 7443)
