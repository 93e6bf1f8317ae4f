"""What every cluster has."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.bootstrap_tokens import INFO, ClusterInfo
from podling.controllers.kubernetes_service import KubernetesService, Servers, endpoints
from podling.controllers.system import (
    BELIEVED,
    BelievedClients,
    SystemPriorityClasses,
)
from podling.machine.pki import Authority
from podling.model.types.core import ConfigMap, Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.networking import ServiceCIDR
from podling.model.types.scheduling import PriorityClass
from podling.model.types.service import Endpoints, Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


def kubernetes_service(cluster: Cluster, host: str, port: int) -> KubernetesService:
    of = cluster.informers.of
    informers = of(Namespace), of(Service), of(ServiceCIDR)
    return KubernetesService(cluster.client, *informers, Servers(host), port, "10.96.0.0/16")


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
async def test_what_was_written_into_the_service_stays(cluster: Cluster, changed: Any) -> None:
    """Also when another server begins."""
    await cluster.run(kubernetes_service(cluster, "192.0.2.1", 6443))
    before = await cluster.client.get(Service, "kubernetes", "default")
    await cluster.client.patch(Service, "kubernetes", "default", {"spec": changed})
    await cluster.settle()
    after = await cluster.client.get(Service, "kubernetes", "default")
    assert (after.spec.type, after.spec.ports) != (before.spec.type, before.spec.ports)
    await cluster.run(kubernetes_service(cluster, "192.0.2.1", 7443))
    assert (await cluster.client.get(Service, "kubernetes", "default")).spec == after.spec


async def test_servers_of_different_ports_do_not_write_in_turns(cluster: Cluster) -> None:
    """The last one to start says which it is, as in Kubernetes."""
    of = cluster.informers.of
    infos = of(ConfigMap, INFO[0])
    await cluster.make(Namespace, INFO[0], "")
    async with asyncio.timeout(20):
        for host, port in (("192.0.2.1", 6443), ("192.0.2.2", 7443)):
            servers = Servers("192.0.2.1", "192.0.2.2")
            informers = of(Namespace), of(Service), of(ServiceCIDR)
            url = f"https://{host}:{port}"
            info = ClusterInfo(cluster.client, of(Namespace), infos, url, "of both")
            made = KubernetesService(cluster.client, *informers, servers, port, "10.96.0.0/16")
            await cluster.run(made, info)
            servers.change(["192.0.2.1", "192.0.2.2"])
            await cluster.settle()
        # Who was told the other port looks again, as it does every ten seconds.
        servers.change(["192.0.2.2"])
        await cluster.settle()
    (subset,) = (await cluster.client.get(Endpoints, "kubernetes", "default")).subsets
    assert [port.port for port in subset.ports] == [7443]
    slice = await cluster.client.get(EndpointSlice, "kubernetes", "default")
    assert [port.port for port in slice.ports] == [7443]
    published = (await cluster.client.get(ConfigMap, INFO[1], INFO[0])).data
    assert "https://192.0.2.2:7443" in published["kubeconfig"]


async def test_who_is_believed_is_published_beside_what_others_have(cluster: Cluster, tmp_path: Path) -> None:
    def authority(name: str) -> str:
        return Authority(tmp_path / name, cluster.clock.now()).ca.certificate.read_text()

    first, second = authority("first"), authority("second")
    names = "requestheader-allowed-names"
    published = {"client-ca-file": f"of a neighbour\n{first}{second}", names: '["a","b"]', "other": "thing"}
    await cluster.make(Namespace, BELIEVED[0], "")
    await cluster.make(ConfigMap, BELIEVED[1], BELIEVED[0], data=published)
    of = cluster.informers.of
    believed = {"client-ca-file": [second], "requestheader-client-ca-file": [first], names: ["b", "c"]}
    controller = BelievedClients(
        cluster.client, of(Namespace), of(ConfigMap, BELIEVED[0]), believed, cluster.clock
    )
    await cluster.run(controller)

    async def shown() -> dict[str, str]:
        return (await cluster.client.get(ConfigMap, BELIEVED[1], BELIEVED[0])).data

    wanted = {"client-ca-file": first + second, names: '["a","b","c"]', "requestheader-client-ca-file": first}
    assert await shown() == wanted
    broken = {"client-ca-file": "-", names: "-"}
    await cluster.client.patch(ConfigMap, BELIEVED[1], BELIEVED[0], {"data": broken})
    await cluster.settle()
    assert await shown() == wanted | {"client-ca-file": second, names: '["b","c"]'}
    await cluster.client.delete(ConfigMap, BELIEVED[1], BELIEVED[0])
    await cluster.settle()
    assert await shown() == wanted | {"client-ca-file": second, names: '["b","c"]'}
    cluster.clock.move(timedelta(days=100 * 365).total_seconds())
    await cluster.client.patch(ConfigMap, BELIEVED[1], BELIEVED[0], {"metadata": {"labels": {"a": "b"}}})
    await cluster.settle()
    assert (await shown())["client-ca-file"] == ""


async def test_who_is_believed_waits_for_its_namespace(cluster: Cluster) -> None:
    of = cluster.informers.of
    await cluster.run(
        BelievedClients(cluster.client, of(Namespace), of(ConfigMap, BELIEVED[0]), {}, cluster.clock)
    )
    assert BELIEVED[0] not in await cluster.names(Namespace)
    await cluster.make(Namespace, BELIEVED[0], "")
    await cluster.settle()
    assert BELIEVED[1] in await cluster.names(ConfigMap, BELIEVED[0])


def published(servers: Servers, known: list[str]) -> list[str]:
    """The addresses of the endpoints when `known` ones stood there."""
    standing = endpoints(known, 6443, None) if known else None
    (subset,) = endpoints(servers.addresses, 6443, standing).subsets
    return [address.ip for address in subset.addresses]


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ([], ["192.0.2.1", "192.0.2.2"]),
        (["192.0.2.1"], ["192.0.2.1", "192.0.2.2"]),
        # Kubernetes' order is its own: who orders anew would write in turns with it for ever.
        (["192.0.2.2", "192.0.2.1"], ["192.0.2.2", "192.0.2.1"]),
    ],
)
def test_the_endpoints_have_every_server_in_the_order_that_stands(known: list[str], found: list[str]) -> None:
    assert published(Servers("192.0.2.1", "192.0.2.2"), known) == found


async def test_the_endpoints_follow_the_servers(cluster: Cluster) -> None:
    servers = Servers("192.0.2.1", "192.0.2.2")
    of = cluster.informers.of
    informers = of(Namespace), of(Service), of(ServiceCIDR)
    await cluster.run(KubernetesService(cluster.client, *informers, servers, 6443, "10.96.0.0/16"))
    await servers.until_published()

    async def found() -> tuple[list[str], list[str]]:
        (subset,) = (await cluster.client.get(Endpoints, "kubernetes", "default")).subsets
        slice = await cluster.client.get(EndpointSlice, "kubernetes", "default")
        return [one.ip for one in subset.addresses], [one.addresses[0] for one in slice.endpoints]

    assert await found() == (["192.0.2.1", "192.0.2.2"],) * 2
    versions_before = await cluster.client.get(Endpoints, "kubernetes", "default")
    servers.change(["192.0.2.1", "192.0.2.2"])
    await cluster.settle()
    assert await cluster.client.get(Endpoints, "kubernetes", "default") == versions_before

    servers.change(["192.0.2.2"])
    await cluster.settle()
    assert await found() == (["192.0.2.2"],) * 2
    # The last one leaves its address: pods outlive it.
    servers.change([])
    await cluster.settle()
    assert await found() == (["192.0.2.2"],) * 2


async def test_servers_that_believe_different_proxies_do_not_write_in_turns(
    cluster: Cluster, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, cluster.clock.now()).ca.certificate.read_text()
    proxies = {"requestheader-client-ca-file": [authority], "requestheader-allowed-names": ["a"]}
    await cluster.make(Namespace, BELIEVED[0], "")
    published = cluster.informers.of(ConfigMap, BELIEVED[0])
    async with asyncio.timeout(20):
        for believed in ({"client-ca-file": [authority]}, {"client-ca-file": [authority], **proxies}):
            of = cluster.client, cluster.informers.of(Namespace), published
            await cluster.run(BelievedClients(*of, believed, cluster.clock))
        more = {"data": {"of-another-version": "x"}}
        await cluster.client.patch(ConfigMap, BELIEVED[1], BELIEVED[0], more)
        await cluster.settle()
    data = (await cluster.client.get(ConfigMap, BELIEVED[1], BELIEVED[0])).data
    assert data.keys() == {"client-ca-file", "of-another-version", *proxies}
