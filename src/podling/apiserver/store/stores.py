"""All stores of the server by type, as admission and reviews look at them, and storage as a View sees it.

A View is a second version of a stored kind, such as events.k8s.io/v1 of core/v1 Event. `ViewStorage` uses the
keys and revisions of the stored kind and converts values on the way, so a Store need not know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from podling.apiserver.kinds.kind import View
from podling.apiserver.store.store import UNRULED, Store
from podling.model.codec import json
from podling.model.types.meta import KubeObject
from podling.storage.interface import ConflictError, Event, KeyExistsError, Listing, Record, Storage, Watcher
from podling.watch.entry import Entry


class ViewStorage:
    """Implements `podling.storage.interface.Storage` on the storage of the stored kind."""

    def __init__(self, storage: Storage, view: View[Any, Any]) -> None:
        self._storage = storage
        self._view = view
        self._seen_type = view.resource.type
        self._stored_type = view.stored.resource.type

    @property
    def revision(self) -> int:
        return self._storage.revision

    @property
    def compacted(self) -> int:
        return self._storage.compacted

    async def get(self, key: str) -> Record | None:
        return self._optional(await self._storage.get(key))

    async def list(self, prefix: str, *, after: str = "", limit: int = 0) -> Listing:
        listing = await self._storage.list(prefix, after=after, limit=limit)
        return Listing([self._record(record) for record in listing.records], listing.revision)

    async def create(self, key: str, value: bytes) -> int:
        try:
            return await self._storage.create(key, self._to_stored(value))
        except KeyExistsError as error:
            raise KeyExistsError(self._record(error.record)) from error

    async def update(self, key: str, value: bytes, revision: int) -> int:
        try:
            return await self._storage.update(key, self._to_stored(value), revision)
        except ConflictError as error:
            raise ConflictError(key, self._optional(error.record)) from error

    async def delete(self, key: str, revision: int) -> int:
        try:
            return await self._storage.delete(key, revision)
        except ConflictError as error:
            raise ConflictError(key, self._optional(error.record)) from error

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        def hear(revision: int, events: Sequence[Event]) -> None:
            watcher(revision, [self._event(event) for event in events])

        return self._storage.watch(prefix, hear)

    async def history(self, prefix: str, after: int) -> Sequence[Event]:
        return [self._event(event) for event in await self._storage.history(prefix, after)]

    async def compact(self, revision: int) -> None:
        await self._storage.compact(revision)

    async def probe(self) -> None:
        await self._storage.probe()

    async def close(self) -> None:
        """Nothing to close: the storage behind this view has other users."""

    def _event(self, event: Event) -> Event:
        value = None if event.value is None else self._from_stored(event.value)
        return Event(event.revision, event.key, value, self._optional(event.previous))

    def _optional(self, record: Record | None) -> Record | None:
        return None if record is None else self._record(record)

    def _record(self, record: Record) -> Record:
        return record._replace(value=self._from_stored(record.value))

    def _from_stored(self, value: bytes) -> bytes:
        return json.encode(self._view.from_stored(json.decode(value, self._stored_type)))

    def _to_stored(self, value: bytes) -> bytes:
        return json.encode(self._view.to_stored(json.decode(value, self._seen_type)))


T = TypeVar("T", bound=KubeObject)


class Stores:
    """Implements `podling.apiserver.admission.chain.Objects`."""

    def __init__(self, stores: Sequence[Store[Any]]) -> None:
        self._by_type = {store.type: store for store in stores}

    def find(self, type: type[T], namespace: str, name: str) -> T | None:
        store = self._by_type[type]
        entry = store.cache.get(store.prefix(namespace) + name)
        return cast(T, entry.object) if entry is not None else None

    def get(self, type: type[T], namespace: str, name: str) -> T:
        """Raises StatusError 404."""
        return cast(T, self._by_type[type].find(namespace, name).object)

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        store = self._by_type[type]
        for entry in store.cache.select(store.prefix(namespace)).entries:
            yield cast(T, entry.object)

    async def change(
        self, type: type[T], namespace: str, name: str, change: Callable[[T], None], *, dry_run: bool
    ) -> None:
        store = self._by_type[type]

        def changed(standing: Entry) -> Any:
            copy = store.copy(standing)
            change(copy)
            return copy

        await store.update(namespace, name, changed, _Unasked(), rules=UNRULED, dry_run=dry_run)


class _Unasked:
    """Admission for writes of admission plugins, which are not admitted again."""

    async def admit(self, new: Any, old: Any) -> None: ...

    async def validate(self, new: Any, old: Any) -> None: ...
