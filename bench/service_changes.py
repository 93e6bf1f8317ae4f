"""How soon a change of endpoints is in the kernel where API server and proxy are one process, as in `podling
up`: from the write of an EndpointSlice until nftables tells of its commit, with few and with many services of
four endpoints, and from the write by which a pod becomes ready. The floor is the commit of as much by the
library alone, in the same process, with as many services: an element of a map, and another verdict for one of
them.

Between two changes the process counts for as long as the fastest change took. Counting waits for nothing and
touches no memory, so what its slowest hundredth takes is the machine's doing, and a change can have no less.

It makes itself a network namespace, so root is needed. Run with `python bench/service_changes.py [NUMBER OF
SERVICES…]`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice

import uvloop
from services import WRITERS, Commits, fill, slice_of
from table import Measurement, report

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.assemble.process import started, tune
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.controllers.controller import run
from podling.controllers.endpoint_slices import EndpointSlices
from podling.controllers.selection import Selection
from podling.model.time import SystemClock
from podling.model.types.container import Container
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import ServiceCIDR, ServiceCIDRSpec
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service, ServicePort, ServiceSpec
from podling.network.nft import Nft, library
from podling.network.proxy import ServiceProxy
from podling.network.table import IPV4, Shape
from podling.storage.memory import MemoryStorage

SIZES = (2, 5_000)
RANGE = "10.96.0.0/16"
CHANGES = 300
FIRST = 20
"""Changes whose fastest says how long is counted. They are not measured."""
APART = {"alone": 0.05, "every 10 ms": 0.01}
"""Seconds between changes."""
FLOOR = """table ip floor {
  map m { type ipv4_addr . inet_service : ipv4_addr . inet_service; }
  map v { type ipv4_addr . inet_proto . inet_service : verdict; }
  chain e0 { }
  chain e1 { }
  chain prerouting { type nat hook prerouting priority 0; ip daddr . meta l4proto . th dport vmap @v; }
}
"""
READY = 100
"""Times that a pod becomes ready."""
PODS = 20
"""With a service each. They take turns: what changes all the time is worked on 10 times a second."""


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    server = ApiServer.build(MemoryStorage(), KINDS, clock=SystemClock(), connector=no_node)
    await server.start()
    client = Client(LocalTransport(server.handle, User("bench", (MASTERS,))))
    await client.create(Namespace(metadata=ObjectMeta(name="default")))
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
    spec = ServiceCIDRSpec(cidrs=[RANGE])
    await client.create(ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=spec))
    yield client
    server.close()


def counting(number: int) -> float:
    """Milliseconds that it takes to count up to a number."""
    began = time.perf_counter()
    for _ in range(number):
        pass
    return (time.perf_counter() - began) * 1000


async def changes(client: Client, apart: float) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds from each write to its commit, of each write itself, and of counting as long."""
    commits, counted = Commits(), list[float]()
    took, written = list[float](), list[float]()
    a_millisecond = round(1_000_000 / min(counting(1_000_000) for _ in range(5)))
    for number in range(FIRST + CHANGES):
        if number == FIRST:
            as_long = round(a_millisecond * min(took))
            took, written = [], []
        await asyncio.sleep(apart / 2)
        if number >= FIRST:
            counted.append(counting(as_long))
        await asyncio.sleep(apart / 2)
        commits.drain()
        wanted, began = slice_of(0, 3 + number % 2), time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            committed = tasks.create_task(commits.next(10))
            await client.update(wanted)
            written.append((time.perf_counter() - began) * 1000)
        took.append((committed.result() - began) * 1000)
    return took, written, counted


def commit(size: int) -> list[float]:
    """Milliseconds of each commit of an element and a verdict, where the table has as many as services."""
    do, took = library(), []
    others = ", ".join(f"10.2.{n >> 8}.{n & 255} . tcp . 80 : goto e0" for n in range(size))
    do(f"{FLOOR}add element ip floor v {{ {others} }}\n")
    for number in range(CHANGES):
        verb = ("delete", "add")[number % 2]
        before, after = number % 2, (number + 1) % 2
        script = (
            f"{verb} element ip floor m {{ 10.0.0.1 . 80 : 10.1.0.1 . 8080 }}\n"
            f"delete element ip floor v {{ 10.2.0.0 . tcp . 80 : goto e{before} }}\n"
            f"add element ip floor v {{ 10.2.0.0 . tcp . 80 : goto e{after} }}\n"
        )
        if not number:
            do("add element ip floor m { 10.0.0.1 . 80 : 10.1.0.1 . 8080 }\n")
        began = time.perf_counter()
        do(script)
        took.append((time.perf_counter() - began) * 1000)
    do("delete table ip floor\n")
    return took


async def ready(client: Client) -> tuple[list[float], list[float]]:
    """Milliseconds from the write by which a pod is ready until nftables has it, and of the write itself."""
    commits, took, written = Commits(), [], []
    for number in range(READY * 2):
        await asyncio.sleep(0.05)
        turn, is_ready = number % PODS, number // PODS % 2 == 0
        condition = {"type": "Ready", "status": "True" if is_ready else "False"}
        address = f"10.64.200.{turn + 1}"
        ips = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
        commits.drain()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            committed = tasks.create_task(commits.next(10))
            status = {"status": {**ips, "conditions": [condition]}}
            await client.patch(Pod, f"web-{turn}", "default", status, subresource="status")
            wrote = (time.perf_counter() - began) * 1000
        if is_ready:
            took.append((committed.result() - began) * 1000)
            written.append(wrote)
    return took, written


@asynccontextmanager
async def endpoints(client: Client) -> AsyncIterator[None]:
    """The controller of EndpointSlices, with services and their pods."""
    informers = Informers(client)
    of = informers.of
    selection = Selection(of(Service), of(Pod))
    controller = EndpointSlices(client, selection, of(EndpointSlice), of(Node))
    ports = [ServicePort(name="http", protocol="TCP", port=80, target_port=8080)]
    await client.create(Node(metadata=ObjectMeta(name="bench")))
    spec = PodSpec(node_name="bench", containers=[Container(name="app", image="app")])
    for number in range(PODS):
        labels = {"app": f"web-{number}"}
        meta = ObjectMeta(name=f"web-{number}", namespace="default", labels=labels)
        await client.create(Service(metadata=meta, spec=ServiceSpec(ports=ports, selector=labels)))
        await client.create(Pod(metadata=meta, spec=spec))
    synced = asyncio.Event()

    async def working() -> None:
        async with asyncio.TaskGroup() as tasks:
            await informers.start(tasks)
            synced.set()
            await run(controller)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(working())
        await synced.wait()
        yield
        running.cancel()
    for number in range(PODS):
        await client.delete(Pod, f"web-{number}", "default", grace_seconds=0)
        await client.delete(Service, f"web-{number}", "default")
    await client.delete(Node, "bench")


async def main(sizes: Sequence[int]) -> None:
    tune()
    measurements: list[Measurement] = []
    async with cluster() as client:
        there = iter(range(max(sizes)))
        before = 0
        for size in sizes:
            wanted = islice(there, size - before)
            await asyncio.gather(*(fill(client, wanted) for _ in range(WRITERS)))
            before, clock, nft = size, SystemClock(), Nft()
            shape = Shape(IPV4, "bench", "10.64.0.0/10", RANGE)
            events = EventRecorder(client, clock, "bench")
            proxy = ServiceProxy(
                Informers(client), nft, [shape], "bench", "192.0.2.1", clock, events, lambda *place: False
            )
            async with asyncio.TaskGroup() as tasks:
                began = time.perf_counter()
                running = tasks.create_task(proxy.run())
                await proxy.is_programmed.wait()
                loaded = time.perf_counter() - began
                started()
                measurements.append(Measurement(f"all in the kernel, {size} services", "s", [loaded]))
                for name, apart in APART.items():
                    took, written, counted = await changes(client, apart)
                    goal = "p50 ≤ 3, p99 ≤ 10 ms"
                    title = f"a change {name}, {size} services"
                    measurements.append(Measurement(title, "ms", took, commit(size), goal))
                    measurements.append(Measurement(f"{title}: its write", "ms", written))
                    measurements.append(Measurement(f"{title}: counting as long", "ms", counted))
                async with endpoints(client):
                    took, written = await ready(client)
                title = f"a pod is ready, {size} services"
                measurements.append(Measurement(title, "ms", took, commit(size)[:READY], "p50 ≤ 15 ms"))
                measurements.append(Measurement(f"{title}: its write", "ms", written))
                running.cancel()
            nft.close()
    report("service_changes", measurements, "commit alone")


if __name__ == "__main__":
    if os.environ.get("PODLING_BENCH_APART") is None:
        alone = ["unshare", "--net", sys.executable, __file__, *sys.argv[1:]]
        environment = {**os.environ, "PODLING_BENCH_APART": "1"}
        sys.exit(subprocess.run(alone, env=environment, check=False).returncode)
    uvloop.run(main([int(size) for size in sys.argv[1:]] or SIZES))
