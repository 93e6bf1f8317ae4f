"""Waiting within a request: what ends it, besides what is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.config import ConfigMaps
from podling.apiserver.store.store import Store
from podling.apiserver.verbs.members import until
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap
from podling.model.types.meta import DeleteOptions, ObjectMeta
from podling.storage.memory import MemoryStorage
from podling.watch.cache import ResourceCache


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)


class Unasked:
    """Admission that has no objections."""

    async def admit(self, new: Any, old: Any) -> None: ...

    waits = False

    async def settle(self, new: Any, old: Any) -> None: ...

    async def validate(self, new: Any, old: Any) -> None: ...


@pytest.fixture
async def store() -> AsyncIterator[Store[ConfigMap]]:
    storage = MemoryStorage()
    decode = json.decoder_of(ConfigMap).decode
    cache = ResourceCache(storage, "/registry/configmaps/", decode, kind="ConfigMap", api_version="v1")
    await cache.start()
    store: Store[ConfigMap] = Store(ConfigMaps(), storage, cache, Clock())
    await store.create(ConfigMap(metadata=ObjectMeta(name="c")), "ns", Unasked())
    yield store
    cache.close()
    await storage.close()


async def set_data(store: Store[ConfigMap], value: str) -> None:
    def change(standing: Any) -> ConfigMap:
        changed = store.copy(standing)
        changed.data = {"a": value}
        return changed

    await store.update("ns", "c", change, Unasked())


async def waiting(store: Store[ConfigMap]) -> Any:
    """What is waited for, or the error that ended it."""
    try:
        return (await until(store, "ns", "c", lambda found: found.data.get("a") == "yes")).data["a"]
    except StatusError as error:
        return error.code


async def test_it_is_over_as_soon_as_it_is_so(store: Store[ConfigMap]) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(waiting(store))
        await asyncio.sleep(0)
        await set_data(store, "no")
        assert not task.done()
        await set_data(store, "yes")
    assert task.result() == "yes"
    assert await waiting(store) == "yes"


async def test_an_object_that_goes_ends_it(store: Store[ConfigMap]) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(waiting(store))
        await asyncio.sleep(0)
        await set_data(store, "no")
        await store.delete("ns", "c", DeleteOptions(), Unasked())
    assert task.result() == 404


async def test_a_server_that_ends_ends_it(store: Store[ConfigMap]) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(waiting(store))
        await asyncio.sleep(0)
        await set_data(store, "no")
        assert isinstance(store.cache, ResourceCache)
        store.cache.close()
    assert task.result() == 503


async def test_nobody_is_left_watching(store: Store[ConfigMap]) -> None:
    assert isinstance(store.cache, ResourceCache)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(waiting(store))
        await asyncio.sleep(0)
        assert len(store.cache._audiences) == 1
        task.cancel()
    assert store.cache._audiences == {}
