"""The zone follows an API server, and `kube-dns` leads to cluster DNS until it gets a selector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dns.asyncquery
import dns.message
import dns.rcode
from msgspec.structs import replace

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.informer import Informer, Informers, until
from podling.dns.dns import ClusterDNS
from podling.dns.forward import ForwardOptions
from podling.dns.server import sockets_at
from podling.dns.service import SLICE, Place, ServiceKeeper
from podling.dns.zone import DNS_NAMESPACE, DNS_SERVICE
from podling.model.types.core import Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import ServiceCIDR, ServiceCIDRSpec
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service, ServicePort
from podling.storage.memory import MemoryStorage
from unit.controllers.conftest import HandClock, _nowhere
from unit.dns.cluster import service

HOST = "127.0.0.1"
ADDRESS = "10.96.0.10"


async def test_the_service_waits_for_its_namespace() -> None:
    server = ApiServer.build(MemoryStorage(), KINDS, connector=_nowhere, clock=HandClock())
    await server.start()
    client = Client(LocalTransport(server.handle, User("admin", (MASTERS,))))
    spec = ServiceCIDRSpec(cidrs=["10.96.0.0/16"])
    await client.create(ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=spec))
    known = Informer(client, Namespace), Informer(client, Service), Informer(client, EndpointSlice)
    keeper = ServiceKeeper(client, *known, Place(ADDRESS, "192.0.2.1", 53, "n1"))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(one.run()) for one in known]
        for one in known:
            await one.wait_synced()
        await keeper.reconcile(None)
        assert not (await client.list(Service)).items
        for name in ("default", DNS_NAMESPACE):
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        await keeper.queue.get()
        await keeper.reconcile(None)
        assert (await client.get(Service, DNS_SERVICE, DNS_NAMESPACE)).spec.cluster_ip == ADDRESS
        for each in watching:
            each.cancel()


@asynccontextmanager
async def answering() -> AsyncIterator[tuple[Client, int]]:
    """A client of the API server, and the port where names are answered."""
    server = ApiServer.build(MemoryStorage(), KINDS, connector=_nowhere, clock=HandClock())
    await server.start()
    client = Client(LocalTransport(server.handle, User("admin", (MASTERS,))))
    for name in ("default", DNS_NAMESPACE):
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await client.create(
        ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=ServiceCIDRSpec(cidrs=["10.96.0.0/16"]))
    )
    sockets = sockets_at(HOST, 0)
    place = Place(ADDRESS, "192.0.2.1", sockets.port, "n1")
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            ClusterDNS(client, Informers(client), sockets, HandClock(), ForwardOptions(), place=place).run()
        )
        await until(client, EndpointSlice, DNS_NAMESPACE, SLICE)
        yield client, sockets.port
        running.cancel()
    await server.ended()


async def ask(port: int, name: str) -> dns.message.Message:
    return await dns.asyncquery.udp(dns.message.make_query(name, "A"), HOST, port=port)


async def test_the_service_leads_to_where_names_are_answered() -> None:
    async with answering() as (client, port):
        made = await client.get(EndpointSlice, SLICE, DNS_NAMESPACE)
        assert made.endpoints[0].addresses == ["192.0.2.1"]
        assert made.endpoints[0].node_name == "n1"
        assert [(one.name, one.protocol, one.port) for one in made.ports] == [
            ("dns", "UDP", port),
            ("dns-tcp", "TCP", port),
        ]
        assert made.metadata.owner_references[0].name == DNS_SERVICE
        its = await client.get(Service, DNS_SERVICE, DNS_NAMESPACE)
        assert (its.spec.cluster_ip, its.spec.selector) == (ADDRESS, {})
        assert str((await ask(port, "kube-dns.kube-system.svc.cluster.local.")).answer[0][0]) == ADDRESS


async def test_names_follow_the_objects() -> None:
    async with answering() as (client, port):
        name = "web.default.svc.cluster.local."
        assert (await ask(port, name)).rcode() == dns.rcode.NXDOMAIN
        made = await client.create(service("web", ports=[ServicePort(name="p", protocol="TCP", port=80)]))
        seen = await ask(port, name)
        assert str(seen.answer[0][0]) == made.spec.cluster_ip
        await client.delete(Service, "web", "default")
        await until_gone(client, port, name)


async def until_gone(client: Client, port: int, name: str) -> None:
    while (await ask(port, name)).rcode() != dns.rcode.NXDOMAIN:
        pass


async def test_coredns_takes_over_by_the_selector_and_gives_back() -> None:
    async with answering() as (client, _):
        its = await client.get(Service, DNS_SERVICE, DNS_NAMESPACE)
        chosen = replace(its, spec=replace(its.spec, selector={"k8s-app": "kube-dns"}))
        await client.update(chosen)
        left: set[str] = {SLICE}
        while left:
            left = {one.metadata.name for one in (await client.list(EndpointSlice, DNS_NAMESPACE)).items}
        await client.patch(Service, DNS_SERVICE, DNS_NAMESPACE, {"spec": {"selector": None}})
        await until(client, EndpointSlice, DNS_NAMESPACE, SLICE)
