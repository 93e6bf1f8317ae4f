"""How an API server grows with its pods: memory, writes, GET by name, the first and the last page of a list.

Pods are created through the pipeline, durably. Run with `python bench/scale.py`, or with `--etcd [PODS]` for
as many in an etcd that waits for the disk, which `PODLING_UPSTREAM` makes, and how long a further server
takes to read them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import quote

import uvloop
from plot import Line, plot
from server import LISTED_PODS, PODS, ROOT, api_server, pod, post
from table import Measurement, report

from podling.apiserver.assemble import ApiServer
from podling.apiserver.request.request import Request
from podling.assemble.etcd import open_etcd
from podling.assemble.process import COLLECT_STARTED
from podling.assemble.settle import EtcdOptions

GROWTH = (1, 10, 100, 1_000, 5_000, 10_000, 20_000, 50_000)
WRITERS = 8
PAGE = 500
ROUNDS = 20


class Size(NamedTuple):
    """Memory in megabytes, latencies in milliseconds, a creation in microseconds."""

    memory: float
    create: float
    get: list[float]
    first_page: list[float]
    last_page: list[float]


async def ask(server: ApiServer, path: str, query: str = "") -> Any:
    response = await server.handle(Request("GET", path, query, user=ROOT))
    assert response.status == 200 and isinstance(response.body, bytes)
    return response.body


async def timed(ask_it: Callable[[], Any]) -> list[float]:
    samples = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        await ask_it()
        samples.append((perf_counter() - begin) * 1000)
    return samples


async def fill(server: ApiServer, numbers: count[int], pods: int) -> None:
    async def write() -> None:
        while (number := next(numbers)) < pods:
            await post(server, PODS, pod({"name": f"pod-{number}"}))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(write())


async def last_token(server: ApiServer) -> str:
    """What asks for the last page."""
    query = f"limit={PAGE}"
    while True:
        token = json.loads(await ask(server, PODS, query))["metadata"].get("continue")
        if not token:
            return query
        query = f"limit={PAGE}&continue={quote(token)}"


async def measure(server: ApiServer, before: int, pods: int) -> Size:
    begin = perf_counter()
    await fill(server, count(before), pods)
    create = (perf_counter() - begin) / (pods - before) * 1e6
    last = await last_token(server)
    gc.collect()
    return Size(
        memory(),
        create,
        await timed(lambda: ask(server, f"{PODS}/pod-0")),
        await timed(lambda: ask(server, PODS, f"limit={PAGE}")),
        await timed(lambda: ask(server, PODS, last)),
    )


def memory() -> float:
    """Of this process, in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


async def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        async with api_server(Path(temporary)) as server:
            sizes = await grown(server, GROWTH[-1])
    show(sizes)


async def over_etcd(most: int) -> None:
    # It needs what tests need.
    from upstream import etcd_at, unpacked

    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with etcd_at(unpacked(directory / "programs"), directory) as etcd:
            async with api_server(directory, etcd.url) as server:
                sizes = await grown(server, most)
                begin, before = perf_counter(), memory()
                further = await open_etcd(EtcdOptions(servers=(etcd.url,)))
                took, more = perf_counter() - begin, memory() - before
                await further.close()
    read = f"{max(sizes):,} pods: read from etcd by a further server"
    more_read = [Measurement(read, "s", [took]), Measurement("  its memory before objects", "MB", [more])]
    show(sizes, "-etcd", more_read)


async def grown(server: ApiServer, most: int) -> dict[int, Size]:
    sizes: dict[int, Size] = {}
    await post(server, LISTED_PODS, pod({"name": "the-first-is-slow"}))
    before = 0
    for pods in (*(pods for pods in GROWTH if pods < most), most):
        sizes[pods] = await measure(server, before, pods)
        before = pods
    return sizes


def show(sizes: dict[int, Size], suffix: str = "", more: Sequence[Measurement] = ()) -> None:
    measurements = [*more]
    for pods, size in sizes.items():
        goal = "≤ 600 MB" if pods == GROWTH[-1] else ""
        measurements += [
            Measurement(f"{pods:,} pods: memory", "MB", [size.memory], goal=goal),
            Measurement(f"{pods:,} pods: create, {WRITERS} at once", "µs", [size.create]),
            Measurement(f"{pods:,} pods: GET by name", "ms", size.get),
            Measurement(f"{pods:,} pods: LIST limit={PAGE}, first page", "ms", size.first_page),
            Measurement(f"{pods:,} pods: LIST limit={PAGE}, last page", "ms", size.last_page),
        ]
    report(f"scale{suffix}", measurements)
    plot(
        f"memory{suffix}",
        "pods",
        "megabytes",
        [Line("memory", [(pods, s.memory) for pods, s in sizes.items()])],
    )
    lines = (
        Line("create", [(pods, size.create) for pods, size in sizes.items()]),
        Line("first page of 500", [(pods, min(size.first_page) * 1000) for pods, size in sizes.items()]),
        Line("last page", [(pods, min(size.last_page) * 1000) for pods, size in sizes.items()]),
    )
    plot(f"pods{suffix}", "pods", "microseconds", lines)


if __name__ == "__main__":
    gc.set_threshold(*COLLECT_STARTED)
    match sys.argv[1:]:
        case ["--etcd", *pods]:
            uvloop.run(over_etcd(int(pods[0]) if pods else GROWTH[-1]))
        case _:
            uvloop.run(main())
