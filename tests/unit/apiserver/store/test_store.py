"""The store of a kind by itself: what it hands out after a write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.kind import storage_key
from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.store.store import Store
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.meta import DeleteOptions, Preconditions
from podling.model.types.pod import Pod
from podling.storage.interface import ConflictError, Event, KeyExistsError, Write
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


class Lagging(MemoryStorage):
    """As etcd beside another server: what that one writes is heard of when it is asked what is current, or a
    write is refused. `asked` counts the questions."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.first: list[Callable[[], Write]] = []
        """What the other server writes before each write of this one."""
        self._unheard: list[tuple[int, Sequence[Event]]] = []
        self._publish = self._watchers.publish
        self._watchers.publish = self._hold  # type: ignore[method-assign]
        self._holds = False

    async def of_another(self, write: Write) -> int:
        self._holds = True
        revision = await super().commit([write])
        self._holds = False
        return revision

    async def current(self) -> int:
        self.asked += 1
        self._catch_up()
        return self.revision

    async def commit(self, writes: Sequence[Write]) -> int:
        if self.first:
            await self.of_another(self.first.pop(0)())
        try:
            return await super().commit(writes)
        except (ConflictError, KeyExistsError):
            self._catch_up()
            raise

    def _hold(self, revision: int, events: Sequence[Event]) -> None:
        self._unheard.append((revision, events))
        if not self._holds:
            self._catch_up()

    def _catch_up(self) -> None:
        while self._unheard:
            self._publish(*self._unheard.pop(0))


@pytest.fixture
async def lagging() -> AsyncIterator[tuple[Store[Pod], Lagging]]:
    kind, storage = Pods(), Lagging()
    decode = json.decoder_of(Pod).decode
    cache = ResourceCache(storage, storage_key(kind.resource), decode, kind="Pod", api_version="v1")
    await cache.start()
    store = Store(kind, storage, cache, StandingClock())
    await store.create(json.decode_sent(POD, Pod), "default", Unasked())
    yield store, storage


KEY = f"{storage_key(Pods().resource)}default/p"


async def relabelled(store: Store[Pod], storage: Lagging, value: str) -> None:
    """By another server."""
    standing = store.find("default", "p")
    pod = store.copy(standing)
    pod.metadata.labels["other"] = value
    pod.metadata.resource_version = ""
    await storage.of_another(Write(KEY, json.encode(pod), standing.revision))


def labelling(store: Store[Pod], name: str = "own") -> Callable[[Entry], Pod]:
    def change(standing: Entry) -> Pod:
        pod = store.copy(standing)
        pod.metadata.labels[name] = "1"
        return pod

    return change


async def test_an_update_asks_the_storage_once_and_is_made_of_what_stands(
    lagging: tuple[Store[Pod], Lagging],
) -> None:
    store, storage = lagging
    await store.update("default", "p", labelling(store), Unasked())
    assert storage.asked == 0
    await relabelled(store, storage, "1")
    updated = await store.update("default", "p", labelling(store, "second"), Unasked())
    assert {"own", "other", "second"} <= updated.object.metadata.labels.keys()
    assert storage.asked == 0, "the refusal has told what stands"


async def test_an_update_that_another_server_forestalls_again_and_again_is_made(
    lagging: tuple[Store[Pod], Lagging],
) -> None:
    store, storage = lagging

    def write() -> Write:
        record = storage._records[KEY]
        return Write(KEY, record.value, record.revision)

    storage.first = [write] * 20
    updated = await store.update("default", "p", labelling(store), Unasked())
    assert updated.object.metadata.labels["own"] == "1" and not storage.first


async def test_what_changes_nothing_changes_nothing_of_what_stands(
    lagging: tuple[Store[Pod], Lagging],
) -> None:
    store, storage = lagging
    await relabelled(store, storage, "1")
    unchanged = await store.update("default", "p", lambda standing: store.copy(standing), Unasked())
    assert unchanged.object.metadata.labels["other"] == "1"
    assert unchanged.revision == storage.revision


async def test_a_refusal_holds_for_what_stands_and_not_for_what_stood(
    lagging: tuple[Store[Pod], Lagging],
) -> None:
    store, storage = lagging
    made = store.find("default", "p")
    await storage.of_another(Write(KEY, None, made.revision))
    revision = await storage.of_another(Write(KEY, made.value, None))

    # Its version is of the future, as far as the cache knows.
    def named(standing: Entry) -> Pod:
        pod = store.copy(made)
        pod.metadata.labels["own"] = "1"
        pod.metadata.resource_version = str(revision)
        return pod

    updated = await store.update("default", "p", named, Unasked())
    assert updated.object.metadata.labels["own"] == "1"

    await storage.of_another(Write(KEY, None, updated.revision))
    with pytest.raises(StatusError, match="not found"):
        await store.update("default", "p", labelling(store, "x"), Unasked())
    await storage.of_another(Write(KEY, made.value, None))
    assert (await store.update("default", "p", labelling(store), Unasked())).object.metadata.labels[
        "own"
    ] == "1"


async def test_a_deletion_is_held_against_what_stands(lagging: tuple[Store[Pod], Lagging]) -> None:
    store, storage = lagging
    made = store.find("default", "p")
    await relabelled(store, storage, "1")
    stale = DeleteOptions(preconditions=Preconditions(resource_version=str(made.revision)))
    with pytest.raises(StatusError) as refused:
        await store.delete("default", "p", stale, Unasked())
    assert refused.value.code == 409
    newest = DeleteOptions(preconditions=Preconditions(resource_version=str(storage.revision)))
    await relabelled(store, storage, "2")
    with pytest.raises(StatusError):
        await store.delete("default", "p", newest, Unasked(), dry_run=True)
