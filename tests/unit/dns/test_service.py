"""The zone follows an API server, and `kube-dns` leads to cluster DNS until it gets a selector."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dns.asyncquery
import dns.message
import dns.rcode
import dns.rrset
from msgspec.structs import replace

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.informer import Informer, Informers, until
from podling.controllers.kubernetes_service import endpoint_slice
from podling.dns.config import STUBS, UPSTREAM
from podling.dns.dns import ClusterDNS
from podling.dns.forward import ForwardOptions
from podling.dns.server import sockets_at
from podling.dns.service import SLICE, Place, ServiceKeeper, slice_of
from podling.dns.zone import DNS_NAMESPACE, DNS_SERVICE
from podling.model.errors import StatusError
from podling.model.types.container import Container
from podling.model.types.core import ConfigMap, Event, Namespace, ServiceAccount
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import ServiceCIDR, ServiceCIDRSpec
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service, ServicePort
from podling.storage.memory import MemoryStorage
from unit.controllers.conftest import HandClock, _nowhere
from unit.dns.cluster import service

HOST = "127.0.0.1"
ALONE = ForwardOptions(Path("/nowhere"))
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
async def answering(
    options: ForwardOptions = ALONE, client_type: type[Client] = Client, *there: ConfigMap
) -> AsyncIterator[tuple[Client, int]]:
    """A client of the API server, and the port where names are answered."""
    server = ApiServer.build(MemoryStorage(), KINDS, connector=_nowhere, clock=HandClock())
    await server.start()
    client = Client(LocalTransport(server.handle, User("admin", (MASTERS,))))
    for name in ("default", DNS_NAMESPACE):
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await client.create(
        ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=ServiceCIDRSpec(cidrs=["10.96.0.0/16"]))
    )
    for one in there:
        await client.create(one)
    sockets = sockets_at(HOST, 0)
    place = Place(ADDRESS, "192.0.2.1", sockets.port, "n1")
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        asking = client_type(LocalTransport(server.handle, User("admin", (MASTERS,))))
        running = tasks.create_task(
            ClusterDNS(asking, Informers(asking), sockets, HandClock(), options, place=place).run()
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


async def test_what_answers_beside_a_server_that_is_gone_is_taken_away() -> None:
    """Each of several servers has a slice of its own, and the others see to it."""
    async with answering() as (client, _):
        its = await client.get(Service, DNS_SERVICE, DNS_NAMESPACE)

        def of(node: str, server: str) -> EndpointSlice:
            return slice_of(its, Place(ADDRESS, "192.0.2.7", 53, node, server))

        for one in (of("n2", "192.0.2.2"), of("n3", "192.0.2.3"), of("n1", "192.0.2.2")):
            await client.create(one)
        await client.create(endpoint_slice(["192.0.2.1", "192.0.2.2"], 6443, None))
        names: set[str] = set()
        while names != {SLICE, f"{SLICE}-n2"}:
            names = {one.metadata.name for one in (await client.list(EndpointSlice, DNS_NAMESPACE)).items}


@asynccontextmanager
async def other_server(address: str) -> AsyncIterator[str]:
    """The place of a server that has this address for every name."""
    loop = asyncio.get_running_loop()
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind((HOST, 0))
        sock.setblocking(False)

        def answer() -> None:
            message, client = sock.recvfrom(4096)
            query = dns.message.from_wire(message)
            reply = dns.message.make_response(query, recursion_available=True)
            reply.answer.append(dns.rrset.from_text(query.question[0].name, 60, "IN", "A", address))
            sock.sendto(reply.to_wire(), client)

        loop.add_reader(sock, answer)
        try:
            yield f"{HOST}:{sock.getsockname()[1]}"
        finally:
            loop.remove_reader(sock)


async def addresses(port: int, name: str) -> list[str]:
    return [str(one) for rrset in (await ask(port, name)).answer for one in rrset]


async def test_a_config_map_says_who_is_asked_until_it_is_gone() -> None:
    """What was kept of other servers is forgotten; what cannot be read is told of, and changes nothing."""
    name, of_stub = "www.example.com.", "www.corp.test."
    async with (
        other_server("192.0.2.1") as first,
        other_server("192.0.2.2") as second,
        answering(ForwardOptions(servers=(first,))) as (client, port),
    ):
        assert await addresses(port, name) == await addresses(port, of_stub) == ["192.0.2.1"]
        data = {STUBS: json.dumps({"corp.test": [second]})}
        meta = ObjectMeta(name=DNS_SERVICE, namespace=DNS_NAMESPACE)
        await client.create(ConfigMap(metadata=meta, data=data))
        while await addresses(port, of_stub) != ["192.0.2.2"]:
            pass
        assert await addresses(port, name) == ["192.0.2.1"]
        broken = {"data": {UPSTREAM: "none", STUBS: None}}
        await client.patch(ConfigMap, DNS_SERVICE, DNS_NAMESPACE, broken)
        while not (events := (await client.list(Event, DNS_NAMESPACE)).items):
            pass
        assert (events[0].reason, events[0].involved_object.name) == ("InvalidConfiguration", DNS_SERVICE)
        assert events[0].message.startswith(f"{UPSTREAM} of the ConfigMap kube-system/kube-dns: ")
        assert await addresses(port, of_stub) == ["192.0.2.2"]
        await client.patch(ConfigMap, DNS_SERVICE, DNS_NAMESPACE, {"data": {UPSTREAM: json.dumps([second])}})
        while await addresses(port, name) != ["192.0.2.2"]:
            pass
        await client.delete(ConfigMap, DNS_SERVICE, DNS_NAMESPACE)
        while await addresses(port, name) != ["192.0.2.1"]:
            pass
        assert await addresses(port, of_stub) == ["192.0.2.1"]


async def test_a_config_map_that_cannot_be_read_is_told_of_once() -> None:
    """Also at the start, where the options hold instead."""
    broken = ConfigMap(
        metadata=ObjectMeta(name=DNS_SERVICE, namespace=DNS_NAMESPACE), data={UPSTREAM: '["ns.test"]'}
    )
    async with (
        other_server("192.0.2.1") as server,
        answering(ForwardOptions(servers=(server,)), Client, broken) as (client, port),
    ):
        while await addresses(port, "www.example.com.") != ["192.0.2.1"]:
            pass
        while not (events := (await client.list(Event, DNS_NAMESPACE)).items):
            pass
        # What it says of the next is written after what it says of the first.
        await client.patch(ConfigMap, DNS_SERVICE, DNS_NAMESPACE, {"data": {UPSTREAM: "none"}})
        while len(events) < 2:
            events = (await client.list(Event, DNS_NAMESPACE)).items
        assert [one.count for one in events] == [1, 1]


class Limited(Client):
    """Who may not read ConfigMaps, as the role of CoreDNS."""

    async def list(self, type_: type[Any], *args: Any, **kwargs: Any) -> Any:
        if type_ is ConfigMap:
            raise StatusError(403, "Forbidden", "configmaps is forbidden")
        return await super().list(type_, *args, **kwargs)


async def test_without_the_right_to_read_it_the_options_say_who_is_asked() -> None:
    async with (
        other_server("192.0.2.1") as server,
        answering(ForwardOptions(servers=(server,)), Limited) as (_, port),
    ):
        assert await addresses(port, "www.example.com.") == ["192.0.2.1"]


async def test_search_paths_are_walked_if_asked_for() -> None:
    """A pod's, once its address is known."""
    async with (
        other_server("192.0.2.1") as server,
        answering(ForwardOptions(servers=(server,), autopath=True)) as (client, port),
    ):
        name = "www.example.com.default.svc.cluster.local."
        assert await addresses(port, name) == []
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
        spec = PodSpec(node_name="n1", containers=[Container(name="app", image="app:1")])
        await client.create(Pod(metadata=ObjectMeta(name="asks", namespace="default"), spec=spec))
        status = {"status": {"podIP": HOST, "podIPs": [{"ip": HOST}]}}
        await client.patch(Pod, "asks", "default", status, subresource="status")
        while await addresses(port, name) != ["www.example.com.", "192.0.2.1"]:
            pass
