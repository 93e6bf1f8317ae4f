"""The proxy at work, on a real API server and a kernel that only takes notes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.informer import Informers
from podling.model.types.core import Namespace
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import ServiceCIDR, ServiceCIDRSpec
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service, ServicePort, ServiceSpec
from podling.network.nft import NftError, Run
from podling.network.proxy import TRIGGER, ServiceProxy
from podling.network.table import IPV4, Shape
from podling.process.metrics import Exposition
from podling.storage.memory import MemoryStorage
from unit.controllers.conftest import HandClock, Recorder, _nowhere

T = TypeVar("T")
NODE, ADDRESS = "n1", "192.0.2.1"


class Kernel:
    """In the place of `Nft`. `refuses` is how many scripts it will not take."""

    def __init__(self) -> None:
        self.scripts = asyncio.Queue[str]()
        self.refuses = 0

    async def run(self, work: Callable[[Run], T], *, is_short: bool = False) -> T:
        return work(self._take)

    def _take(self, script: str) -> str:
        if self.refuses:
            self.refuses -= 1
            raise NftError("no")
        self.scripts.put_nowait(script)
        return ""


class Proxied:
    def __init__(self, client: Client, kernel: Kernel, proxy: ServiceProxy, events: Any) -> None:
        self.client, self.kernel, self.proxy, self.events = client, kernel, proxy, events

    async def service(self, name: str, **spec: Any) -> Service:
        ports = spec.pop("ports", [ServicePort(name="http", protocol="TCP", port=80)])
        made = Service(
            metadata=ObjectMeta(name=name, namespace="default"), spec=ServiceSpec(ports=ports, **spec)
        )
        return await self.client.create(made)

    def metric(self, line: str) -> float:
        exposition = Exposition([self.proxy.metrics])
        (found,) = (one for one in exposition.text().decode().splitlines() if one.startswith(line + " "))
        return float(found.rpartition(" ")[2])


@asynccontextmanager
async def proxied(*taken: tuple[str, str, int]) -> AsyncIterator[Proxied]:
    server = ApiServer.build(MemoryStorage(), KINDS, connector=_nowhere, clock=HandClock())
    await server.start()
    client = Client(LocalTransport(server.handle, User("admin", (MASTERS,))))
    await client.create(Namespace(metadata=ObjectMeta(name="default")))
    await client.create(
        ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=ServiceCIDRSpec(cidrs=["10.96.0.0/16"]))
    )
    kernel, events, shape = Kernel(), Recorder(), Shape(IPV4, "t", "", "10.96.0.0/16")
    nft: Any = kernel
    said: Any = events
    proxy = ServiceProxy(
        Informers(client), nft, [shape], NODE, ADDRESS, HandClock(), said, lambda *place: place in taken
    )
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(proxy.run())
        await proxy.is_programmed.wait()
        assert "table ip t {" in await kernel.scripts.get()
        yield Proxied(client, kernel, proxy, events)
        running.cancel()
    await server.ended()


async def until(holds: Callable[[], bool]) -> None:
    while True:
        if holds():
            return
        await asyncio.sleep(0)


async def test_changes_are_elements_and_counted() -> None:
    async with proxied() as it:
        made = await it.service("web")
        assert f"refused {{ {made.spec.cluster_ip} . tcp . 80 }}" in await it.kernel.scripts.get()
        began = HandClock()
        began.move(-3)
        annotations = {TRIGGER: began.now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        labels = {"kubernetes.io/service-name": "web"}
        meta = ObjectMeta(name="web-1", namespace="default", labels=labels, annotations=annotations)
        endpoint = Endpoint(["10.0.0.1"], EndpointConditions(ready=True), node_name=NODE)
        ports = [SlicePort(name="http", protocol="TCP", port=8080)]
        await it.client.create(
            EndpointSlice(metadata=meta, address_type="IPv4", endpoints=[endpoint], ports=ports)
        )
        script = await it.kernel.scripts.get()
        assert f"{made.spec.cluster_ip} . 80 . 0 : 10.0.0.1 . 8080" in script
        assert "table ip t {" not in script
        programming = 'kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le='
        await until(lambda: it.metric(f'{programming}"3.0"}}') == 1)
        assert it.metric(f'{programming}"2.0"}}') == 0
        assert it.metric('kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"}') == 2
        assert it.metric("kubeproxy_sync_proxy_rules_endpoint_changes_total") == 1


async def test_what_is_refused_is_followed_by_the_whole() -> None:
    async with proxied() as it:
        it.kernel.refuses = 1
        await it.service("web")
        assert "table ip t {" in await it.kernel.scripts.get()
        refused = 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"}'
        assert it.metric(refused) == 1


async def test_a_node_port_that_a_process_has_is_told_of_once() -> None:
    port = 30080
    async with proxied(("TCP", ADDRESS, port)) as it:
        ports = [ServicePort(name="http", protocol="TCP", port=80, node_port=port)]
        await it.service("web", type="NodePort", ports=ports)
        await it.kernel.scripts.get()
        other = [{"name": "http", "protocol": "TCP", "port": 81, "nodePort": port}]
        await it.client.patch(Service, "web", "default", {"spec": {"ports": other}})
        await it.kernel.scripts.get()
        which = f"TCP port {port} of node {NODE}"
        why = f"{which} is in use by a process there, whose clients are led to this service"
        assert it.events.said == [f"NodePortInUse: {why}"]


async def test_a_health_check_port_that_is_taken_is_told_of() -> None:
    """Nobody can listen at the address: it is of another machine."""
    async with proxied() as it:
        spec = {"type": "LoadBalancer", "external_traffic_policy": "Local"}
        made = await it.service("web", **spec)
        await until(lambda: bool(it.events.said))
        port = made.spec.health_check_node_port
        reason, _, why = it.events.said[0].partition(": ")
        assert reason == "FailedToStartServiceHealthcheck"
        assert why.startswith(f'node {NODE} failed to start healthcheck "default/web" on port {port}: ')
