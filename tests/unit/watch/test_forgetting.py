"""Windows shrink with age: what hardly anybody may still ask for goes."""

from __future__ import annotations

import asyncio
import json

import pytest

from podling.storage.interface import CompactedError
from podling.storage.memory import MemoryStorage
from podling.watch import forgetting
from podling.watch.cache import FORGOTTEN_AT_ONCE, LEAST, ResourceCache
from podling.watch.forgetting import AGE, Forgetting

PODS = "/registry/pods/"


class Store:
    """Two resources; each change is of either."""

    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self.pods, self.nodes = (
            ResourceCache(self.storage, prefix, json.loads, kind="X", api_version="v1")
            for prefix in (PODS, "/registry/minions/")
        )
        self.forgetting = Forgetting([self.pods, self.nodes])

    async def make(self, first: int, number: int) -> int:
        """Returns the revision after so many pods."""
        for n in range(first, first + number):
            await self.storage.create(f"{PODS}{n:05}", b'{"metadata":{}}')
        return self.storage.revision

    async def tick(self) -> None:
        self.forgetting.tick(self.storage.revision)
        # One piece of each cache and what finds nothing, in a turn each.
        for _ in range(20):
            await asyncio.sleep(0)

    def resumes(self, revision: int) -> bool:
        try:
            self.pods.watch(PODS, revision).close()
        except CompactedError:
            return False
        return True


@pytest.fixture
async def store() -> Store:
    store = Store()
    await asyncio.gather(store.pods.start(), store.nodes.start())
    return store


async def test_a_watch_resumes_for_two_ticks_and_no_longer(store: Store) -> None:
    old = await store.make(0, 200)
    await store.tick()
    new = await store.make(200, 200)
    await store.storage.compact(new)
    for _ in range(AGE):
        assert store.resumes(old - 1)
        await store.tick()
    assert not store.resumes(old - 1)
    assert store.resumes(old) and store.resumes(new - 1)
    await store.tick()
    assert not store.resumes(new - LEAST - 1) and store.resumes(new - LEAST)


async def test_a_list_of_the_past_goes_on_until_it_is_compacted(store: Store) -> None:
    past = await store.make(0, 200)
    await store.make(200, 2 * FORGOTTEN_AT_ONCE)
    for _ in range(AGE + 2):
        await store.tick()
    assert len(store.pods.select(PODS, revision=past).entries) == 200
    await store.storage.compact(past + 1)
    await store.tick()
    assert len(store.pods.select(PODS, revision=past + 1).entries) == 201
    with pytest.raises(CompactedError):
        store.pods.watch(PODS, past)


async def test_it_goes_in_pieces_and_its_memory_is_given_back_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(forgetting, "give_back", lambda: given.append(len(store.pods._window._changes)))
    newest = await store.make(0, 3 * FORGOTTEN_AT_ONCE + LEAST)
    await store.storage.compact(newest)
    for _ in range(AGE + 1):
        await store.tick()
    assert not given
    await store.tick()
    await store.tick()
    assert given == [LEAST]
    assert store.resumes(newest - LEAST) and not store.resumes(newest - LEAST - 1)


def test_memory_is_given_back() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    # Too large for Python's own arenas, too small for mappings of their own.
    pieces = [bytes(4000) for _ in range(10_000)]
    last = bytes(4001)
    full = resident()
    pieces.clear()
    forgetting.give_back()
    assert full - resident() > 5_000 and last
