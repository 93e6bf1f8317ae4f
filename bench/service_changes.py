"""How soon a change of endpoints is in the kernel where API server and proxy are one process, as in `podling
up`: from the write of an EndpointSlice until nftables tells of its commit, with few and with many services of
four endpoints. The floor is the commit of as many elements by the library alone, in the same process.

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
from podling.model.time import SystemClock
from podling.model.types.core import Namespace
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import ServiceCIDR, ServiceCIDRSpec
from podling.model.types.rbac import MASTERS
from podling.network.nft import Nft, library
from podling.network.proxy import ServiceProxy
from podling.network.table import IPV4, Shape
from podling.storage.memory import MemoryStorage

SIZES = (2, 5_000)
RANGE = "10.96.0.0/16"
CHANGES = 300
APART = {"alone": 0.05, "every 10 ms": 0.01}
"""Seconds between changes."""
FLOOR = "table ip floor { map m { type ipv4_addr . inet_service : ipv4_addr . inet_service; }; }\n"


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    server = ApiServer.build(MemoryStorage(), KINDS, clock=SystemClock(), connector=no_node)
    await server.start()
    client = Client(LocalTransport(server.handle, User("bench", (MASTERS,))))
    await client.create(Namespace(metadata=ObjectMeta(name="default")))
    spec = ServiceCIDRSpec(cidrs=[RANGE])
    await client.create(ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=spec))
    yield client
    server.close()


async def changes(client: Client, apart: float) -> tuple[list[float], list[float]]:
    """Milliseconds from each write to its commit, and of each write itself."""
    commits, took, written = Commits(), [], []
    for number in range(CHANGES):
        await asyncio.sleep(apart)
        commits.drain()
        wanted, began = slice_of(0, 3 + number % 2), time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            committed = tasks.create_task(commits.next(10))
            await client.update(wanted)
            written.append((time.perf_counter() - began) * 1000)
        took.append((committed.result() - began) * 1000)
    return took, written


def commit() -> list[float]:
    """Milliseconds of each commit of three elements."""
    run, took = library(), []
    run(FLOOR)
    for number in range(CHANGES):
        verb = ("delete", "add")[number % 2 == 0]
        elements = ", ".join(f"10.0.0.{one} . 80 : 10.1.0.{one} . 8080" for one in range(3))
        began = time.perf_counter()
        run(f"{verb} element ip floor m {{ {elements} }}\n")
        took.append((time.perf_counter() - began) * 1000)
    run("delete table ip floor\n")
    return took


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
                    took, written = await changes(client, apart)
                    goal = "p50 ≤ 3, p99 ≤ 10 ms"
                    title = f"a change {name}, {size} services"
                    measurements.append(Measurement(title, "ms", took, commit(), goal))
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
