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
    SingleWrites,
    StorageClosedError,
    Watcher,
    Watchers,
    Write,
)


class MemoryStorage(SingleWrites):
    is_shared = False

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

    async def current(self) -> int:
        self._check_open()
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    async def get(self, key: str) -> Record | None:
        self._check_open()
        return self._records.get(key)

    def is_stale(self, key: str) -> bool:
        return False

    async def list(self, prefix: str, *, after: str = "", limit: int = 0) -> Listing:
        self._check_open()
        found = sorted(r for r in self._records.values() if r.key.startswith(prefix) and r.key > after)
        return Listing(found[:limit] if limit else found, self._revision)

    async def commit(self, writes: Sequence[Write]) -> int:
        self._check_open()
        for write in writes:
            record = self._records.get(write.key)
            if write.revision is None and record is not None:
                raise KeyExistsError(record)
            if write.revision != (record.revision if record else None):
                raise ConflictError(write.key, record)
        events = [self._event(write) for write in writes]
        self._events += events
        self._watchers.publish(self._revision, events)
        return self._revision

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

    def _event(self, write: Write) -> Event:
        self._revision += 1
        previous = self._records.pop(write.key, None)
        if write.value is not None:
            self._records[write.key] = Record(write.key, write.value, self._revision)
        return Event(self._revision, write.key, write.value, previous)

    def _check_open(self) -> None:
        if self._closed:
            raise StorageClosedError("the store is closed")
