"""Storage and watch: durable writes against bare SQLite, and what reading and watching the cache costs.

The floor of a write is SQLite alone, in one thread without loop or queue: the same rows, in groups as
large as there are writers. Run with `python bench/storage.py`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter

import uvloop
from table import Measurement, report

from podling.storage import sqlite
from podling.storage.interface import Event, Storage
from podling.storage.memory import MemoryStorage
from podling.storage.sqlite.log import Log
from podling.watch.cache import ResourceCache
from podling.watch.entry import items
from podling.watch.subscription import Subscription

PODS = "/registry/pods/"
ROUNDS = 5
WATCHERS = 100


def pod() -> bytes:
    """A pod of the usual size, about two kilobytes."""
    labels = {f"label-{n}": "x" * 40 for n in range(30)}
    return json.dumps(
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "neato", "labels": labels}},
        separators=(",", ":"),
    ).encode()


POD = pod()
names = map("default/pod-{}".format, count())


def rate(rows: int, seconds: float) -> float:
    return rows / seconds


def bare_sqlite(path: Path, writers: int, rows: int) -> float:
    log = Log(path)
    revisions = count(1)
    groups: Iterator[list[Event]] = (
        [Event(next(revisions), PODS + next(names), POD, None) for _ in range(writers)]
        for _ in range(rows // writers)
    )
    begin = perf_counter()
    for group in groups:
        log.append(group)
    seconds = perf_counter() - begin
    log.close()
    return rate(rows, seconds)


async def created(storage: Storage, writers: int, rows: int) -> float:
    async def write() -> None:
        for _ in range(rows // writers):
            await storage.create(PODS + next(names), POD)

    begin = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(writers):
            tasks.create_task(write())
    return rate(rows, perf_counter() - begin)


async def creates(writers: int, rows: int) -> Measurement:
    floors, samples = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            floors.append(bare_sqlite(Path(folder, "floor.db"), writers, rows))
            storage = await sqlite.open(Path(folder, "podling.db"))
            samples.append(await created(storage, writers, rows))
            await storage.close()
    goal = {1: "≥ 5,000/s", 8: "≥ 25,000/s"}.get(writers, "")
    return Measurement(f"create, {writers} at once", "/s", samples, sorted(floors)[ROUNDS // 2], goal)


async def cache_of(pods: int) -> tuple[MemoryStorage, ResourceCache]:
    storage = MemoryStorage()
    for _ in range(pods):
        await storage.create(PODS + next(names), POD)
    cache = ResourceCache(storage, PODS, json.loads, kind="Pod", api_version="v1")
    await cache.start()
    return storage, cache


async def fan_out(events: int, group: int) -> Measurement:
    """`group` events are written for every turn of the loop."""
    samples = []
    for _ in range(ROUNDS):
        storage, cache = await cache_of(0)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WATCHERS):
                tasks.create_task(read(cache.watch(PODS), events))
            await asyncio.sleep(0)
            begin = perf_counter()
            for n in range(events):
                await storage.create(PODS + next(names), POD)
                if n % group == 0:
                    await asyncio.sleep(0)
        samples.append(rate(events * WATCHERS, perf_counter() - begin))
    return Measurement(
        f"watch, {WATCHERS} watchers, {group} a turn", "/s", samples, goal="≥ 100,000 frames/s"
    )


async def read(subscription: Subscription, events: int) -> None:
    async for batch in subscription:
        events -= batch.count(b"\n")
        if not events:
            subscription.close()


async def reads() -> list[Measurement]:
    _, cache = await cache_of(1_000)
    key = cache.select(PODS, limit=1).entries[0].key

    def get() -> bytes:
        entry = cache.get(key)
        assert entry
        return entry.data

    return [
        Measurement("get", "/s", timed(get, 20_000)),
        Measurement(
            "list of 1,000, joined",
            "/s",
            timed(lambda: b"".join(items(cache.select(PODS).entries)), 100),
            goal="≥ 400/s",
        ),
    ]


def timed(action: Callable[[], object], times: int) -> list[float]:
    samples = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        for _ in range(times):
            action()
        samples.append(rate(times, perf_counter() - begin))
    return samples


async def main() -> None:
    measurements = [await creates(1, 4_000), await creates(8, 16_000), await creates(64, 32_000)]
    measurements += [await fan_out(2_000, 1), await fan_out(2_000, 8), *await reads()]
    report("storage", measurements)


if __name__ == "__main__":
    uvloop.run(main())
