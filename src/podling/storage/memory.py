"""Storage in memory: the simplest implementation, and the reference the contract tests compare others with.

Tests and clusters of hollow nodes run on it. Nothing is durable, and no call waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podling.storage.interface import (
    CompactedError,
    ConflictError,
    Event,
    KeyExistsError,
    Listing,
    Record,
    StorageClosedError,
    Watcher,
    Watchers,
)


class MemoryStorage:
    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._events: list[Event] = []
        self._revision = 0
        self._compacted = 0
        self._watchers = Watchers()
        self._closed = False

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    async def get(self, key: str) -> Record | None:
        self._check_open()
        return self._records.get(key)

    async def list(self, prefix: str, *, after: str = "", limit: int = 0) -> Listing:
        self._check_open()
        found = sorted(r for r in self._records.values() if r.key.startswith(prefix) and r.key > after)
        return Listing(found[:limit] if limit else found, self._revision)

    async def create(self, key: str, value: bytes) -> int:
        self._check_open()
        if record := self._records.get(key):
            raise KeyExistsError(record)
        return self._write(key, value, None)

    async def update(self, key: str, value: bytes, revision: int) -> int:
        return self._write(key, value, self._expect(key, revision))

    async def delete(self, key: str, revision: int) -> int:
        return self._write(key, None, self._expect(key, revision))

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        self._check_open()
        return self._watchers.add(prefix, watcher)

    async def reached(self, revision: int) -> None:
        if self._revision < revision:
            await self._watchers.reached(revision)

    async def history(self, prefix: str, after: int) -> Sequence[Event]:
        self._check_open()
        if after < self._compacted:
            raise CompactedError(self._compacted)
        return [e for e in self._events if e.revision > after and e.key.startswith(prefix)]

    async def compact(self, revision: int) -> None:
        self._check_open()
        self._compacted = max(self._compacted, min(revision, self._revision))
        self._events = [e for e in self._events if e.revision > self._compacted]

    async def probe(self) -> None:
        self._check_open()

    async def close(self) -> None:
        self._closed = True

    def _expect(self, key: str, revision: int) -> Record:
        self._check_open()
        record = self._records.get(key)
        if record is None or record.revision != revision:
            raise ConflictError(key, record)
        return record

    def _write(self, key: str, value: bytes | None, previous: Record | None) -> int:
        self._revision += 1
        if value is None:
            del self._records[key]
        else:
            self._records[key] = Record(key, value, self._revision)
        event = Event(self._revision, key, value, previous)
        self._events.append(event)
        self._watchers.publish(self._revision, [event])
        return self._revision

    def _check_open(self) -> None:
        if self._closed:
            raise StorageClosedError("the store is closed")
