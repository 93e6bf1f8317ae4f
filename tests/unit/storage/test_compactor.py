"""History stays between one and two windows long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podling.storage.compactor import compact_forever
from podling.storage.interface import CompactedError, StorageClosedError
from podling.storage.memory import MemoryStorage


async def _history(storage: MemoryStorage) -> int:
    try:
        return len(await storage.history("", 0))
    except CompactedError as compacted:
        return len(await storage.history("", compacted.revision))


@asynccontextmanager
async def _compacting(storage: MemoryStorage) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        compactor = tasks.create_task(compact_forever(storage, window=10))
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


class _FullOnce(MemoryStorage):
    full = True

    async def compact(self, revision: int) -> None:
        if self.full:
            self.full = False
            raise StorageClosedError("database or disk is full")
        await super().compact(revision)
