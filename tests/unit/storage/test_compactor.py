"""History stays between one and two intervals long, and at most two windows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from podling.storage.compactor import INTERVAL, compact_forever
from podling.storage.interface import CompactedError, StorageClosedError
from podling.storage.memory import MemoryStorage


async def _history(storage: MemoryStorage) -> int:
    try:
        return len(await storage.history("", 0))
    except CompactedError as compacted:
        return len(await storage.history("", compacted.revision))


@asynccontextmanager
async def _compacting(storage: MemoryStorage, window: int = 10) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        compactor = tasks.create_task(compact_forever(storage, window))
        await asyncio.sleep(0)
        yield
        compactor.cancel()


async def test_history_is_cut_to_one_window_when_it_reaches_two() -> None:
    storage = MemoryStorage()
    lengths = []
    async with _compacting(storage):
        for n in range(45):
            await storage.create(f"/registry/pods/{n}", b"")
            await asyncio.sleep(0)
            lengths.append(await _history(storage))
    assert lengths == [*range(1, 20), *range(10, 20), *range(10, 20), *range(10, 16)]


async def test_large_objects_have_a_shorter_history() -> None:
    """A tenant who writes a megabyte again and again does not fill the disk with what it was."""
    storage = MemoryStorage()
    lengths = []
    async with asyncio.TaskGroup() as tasks:
        compactor = tasks.create_task(compact_forever(storage, 1000, window_bytes=50))
        await asyncio.sleep(0)
        for n in range(40):
            await storage.create(f"/registry/pods/{n}", b"ten bytes.")
            await asyncio.sleep(0)
            lengths.append(await _history(storage))
        compactor.cancel()
    assert max(lengths) == 9
    assert min(lengths[10:]) == 5


async def test_what_an_earlier_run_left_is_cut_at_the_start() -> None:
    storage = MemoryStorage()
    for n in range(45):
        await storage.create(f"/registry/pods/{n}", b"")
    async with _compacting(storage):
        assert await _history(storage) == 10


async def test_a_store_that_fails_is_tried_again_a_window_later() -> None:
    storage = _FullOnce()
    async with _compacting(storage):
        for n in range(30):
            await storage.create(f"/registry/pods/{n}", b"")
            await asyncio.sleep(0)
        assert await _history(storage) == 10


def test_what_was_before_the_last_interval_is_forgotten_at_the_next(in_no_time: Callable[..., None]) -> None:
    async def story() -> None:
        storage, oldest = MemoryStorage(), []
        await storage.create("/registry/pods/before", b"")
        async with _compacting(storage, window=10_000):
            for minute in range(22):
                # A write a minute, the one of minute n at revision n + 2.
                await storage.create(f"/registry/pods/{minute}", b"")
                oldest.append(storage.compacted)
                await asyncio.sleep(60)
        assert oldest == [0] * 5 + [1] * 5 + [6] * 5 + [11] * 5 + [16] * 2

    assert INTERVAL == 300
    in_no_time(story())


def test_a_store_at_rest_keeps_what_it_has(in_no_time: Callable[..., None]) -> None:
    async def story() -> None:
        storage = MemoryStorage()
        for n in range(3):
            await storage.create(f"/registry/pods/{n}", b"")
        async with _compacting(storage, window=10_000):
            await asyncio.sleep(100 * INTERVAL)
            assert storage.compacted == storage.revision == 3, "the present can always be asked for"

    in_no_time(story())


def test_a_store_that_fails_is_tried_again_an_interval_later(in_no_time: Callable[..., None]) -> None:
    async def story() -> None:
        storage = _FullOnce()
        await storage.create("/registry/pods/a", b"")
        async with _compacting(storage, window=10_000):
            await asyncio.sleep(1.5 * INTERVAL)
            assert storage.compacted == 0
            await asyncio.sleep(INTERVAL)
            assert storage.compacted == 1

    in_no_time(story())


class _FullOnce(MemoryStorage):
    full = True

    async def compact(self, revision: int) -> None:
        if self.full:
            self.full = False
            raise StorageClosedError("database or disk is full")
        await super().compact(revision)
