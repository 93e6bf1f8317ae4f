"""The store of a kind by itself: what it hands out after a write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.kind import storage_key
from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.store.store import Store
from podling.model.codec import json
from podling.model.types.pod import Pod
from podling.storage.memory import MemoryStorage
from podling.watch.cache import ResourceCache
from podling.watch.entry import Entry

POD = b"""{
  "metadata": {"name": "p", "labels": {"b": "1", "a": "2"}},
  "spec": {
    "containers": [{
      "name": "app", "image": "busybox", "ports": [{"containerPort": 80}],
      "resources": {"limits": {"cpu": "0.5", "memory": 1073741824}, "requests": {"cpu": "1e-1"}},
      "livenessProbe": {"httpGet": {"port": "http"}}
    }],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}]
  }
}"""


class StandingClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 999, tzinfo=UTC)


class Unasked:
    async def admit(self, new: Any, old: Any) -> None: ...

    waits = False

    async def settle(self, new: Any, old: Any) -> None: ...

    async def validate(self, new: Any, old: Any) -> None: ...


@pytest.fixture
async def store() -> AsyncIterator[Store[Pod]]:
    kind, storage = Pods(), MemoryStorage()
    decode = json.decoder_of(Pod).decode
    cache = ResourceCache(storage, storage_key(kind.resource), decode, kind="Pod", api_version="v1")
    await cache.start()
    yield Store(kind, storage, cache, StandingClock())


async def test_what_was_written_is_known_as_it_would_be_decoded(store: Store[Pod]) -> None:
    made = await store.create(json.decode_sent(POD, Pod), "default", Unasked())
    assert made.object == store.copy(made)

    def labelled(standing: Entry) -> Pod:
        pod = store.copy(standing)
        pod.metadata.labels["c"] = "3"
        return pod

    updated = await store.update("default", "p", labelled, Unasked())
    assert updated.object == store.copy(updated)
    assert updated is store.find("default", "p") and updated.revision == 2
    assert made.object == store.copy(made), "the update has changed what it was made from"


async def test_nobody_decodes_what_was_just_written() -> None:
    """Issue 13, cost: the Node authorizer and whoever else hears of a write has its object at once."""

    def decode(data: bytes) -> Pod:
        raise AssertionError("it is known")

    kind, storage, heard = Pods(), MemoryStorage(), list[tuple[str, str]]()
    cache = ResourceCache(storage, storage_key(kind.resource), decode, kind="Pod", api_version="v1")
    await cache.start()

    def listen(key: str) -> None:
        entry = cache.get(key)
        assert entry is not None
        heard.append((entry.object.metadata.name, entry.object.metadata.resource_version))

    cache.listen(listen)
    store = Store(kind, storage, cache, StandingClock())
    made = await store.create(json.decode_sent(POD, Pod), "default", Unasked())
    assert heard == [("p", str(made.revision))]
    assert not cache._expected, "nothing is kept of a write that is done"
