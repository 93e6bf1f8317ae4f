"""A small cluster: the memory store, a cache of its pods, and how a test speaks of what a watcher is sent.

An event is told as `(type, name, revision)`, or `(type, name, revision, color)` when the pod has a color.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from podling.storage.memory import MemoryStorage
from podling.watch.cache import ResourceCache
from podling.watch.entry import Entry
from podling.watch.subscription import Subscription

PODS = "/registry/pods/"
Told = tuple[Any, ...]


class Cluster:
    def __init__(self, storage: MemoryStorage, window: int = 100) -> None:
        self.storage = storage
        self.cache = ResourceCache(storage, PODS, json.loads, kind="Pod", api_version="v1", window=window)

    async def apply(self, name: str, color: str = "") -> int:
        """Create the pod, or update it."""
        key, value = PODS + name, self.pod(name, color)
        if record := await self.storage.get(key):
            return await self.storage.update(key, value, record.revision)
        return await self.storage.create(key, value)

    async def delete(self, name: str) -> int:
        record = await self.storage.get(PODS + name)
        assert record
        return await self.storage.delete(PODS + name, record.revision)

    async def restart_cache(self, window: int = 100) -> None:
        self.cache.close()
        self.cache = Cluster(self.storage, window).cache
        await self.cache.start()

    @staticmethod
    def pod(name: str, color: str = "") -> bytes:
        labels = f',"labels":{{"color":"{color}"}}' if color else ""
        return f'{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}"{labels}}}}}'.encode()

    @staticmethod
    def is_red(entry: Entry) -> bool:
        return bool(entry.object["metadata"].get("labels") == {"color": "red"})

    @staticmethod
    async def read(subscription: Subscription, count: int) -> list[Told]:
        """The next `count` events."""
        events: list[Told] = []
        while len(events) < count:
            events += told(await anext(subscription))
        assert len(events) == count
        return events

    @staticmethod
    async def drain(subscription: Subscription) -> list[Told]:
        """What is there to be read now; ends the subscription."""
        batch = subscription._take()
        subscription.close()
        return told(batch) if batch else []


def told(batch: bytes) -> list[Told]:
    assert batch.endswith(b"\n")
    return [_told(json.loads(line)) for line in batch.splitlines()]


def _told(event: dict[str, Any]) -> Told:
    metadata = event["object"]["metadata"]
    color = metadata.get("labels", {}).get("color")
    name, revision = metadata.get("name", ""), int(metadata["resourceVersion"])
    return (event["type"], name, revision, color) if color else (event["type"], name, revision)


@pytest.fixture(scope="session")
def cluster_type() -> type[Cluster]:
    """For tests that make many clusters."""
    return Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster(MemoryStorage())
    await cluster.cache.start()
    yield cluster
    cluster.cache.close()
