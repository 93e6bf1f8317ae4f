"""The interface of storage: keys, revisions, events, errors. SQLite, etcd and memory implement it, and call
their watchers by `Watchers`.

A store is one log of revisions. Every write that succeeds takes a later revision than all before; the writes
of one transaction may share theirs. A revision never goes back, not even after a crash. A value is opaque
bytes: the object as JSON *without* its resourceVersion. The resourceVersion is the revision of the write, and
is inserted when the value is read (`podling.watch.entry`).

A write returns after it is durable and after every watcher has been called with its event. So a client that
has the answer of a write also finds the write in every cache that watches the same store.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

_log = logging.getLogger(__name__)

MOST_DIRECTORIES = 4096
"""Directories of keys whose watchers are remembered."""

MIGRATING = "/registry/storage.podling/migration"
"""The key that a store has while it is the target of a migration that is not complete: nobody serves from it.
Its value is the uid of the cluster."""


class Record(NamedTuple):
    """The newest value of a key. `revision` is that of its last write."""

    key: str
    value: bytes
    revision: int


class Write(NamedTuple):
    """A write of a transaction: of a new key if `revision` is None, else in place of the value last written
    at `revision`. `value` is None for a deletion. A back end that can (`is_shared`) deletes the key
    `ttl` seconds after the write, or up to a minute later; 0 is for never."""

    key: str
    value: bytes | None
    revision: int | None
    ttl: int = 0


class Event(NamedTuple):
    """One write. `value` is None for a deletion, `previous` is None for a creation."""

    revision: int
    key: str
    value: bytes | None
    previous: Record | None


class Listing(NamedTuple):
    """Records in order of key, as they were at `revision`."""

    records: Sequence[Record]
    revision: int


Watcher = Callable[[int, Sequence[Event]], None]
"""Called on the event loop, in order, once a group of writes is durable: `(revision, events)`.

`revision` is the store's revision now; `events` are those under the watched prefix, at least one: how far the
store has come meanwhile is its `revision`. A watcher must neither block nor raise.
"""


class KeyExistsError(Exception):
    """`create` found the key in use; `record` is its current value."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"{record.key} exists at revision {record.revision}")
        self.record = record


class ConflictError(Exception):
    """The key is not at the expected revision; `record` is its current value, None when the key does not
    exist."""

    def __init__(self, key: str, record: Record | None) -> None:
        super().__init__(f"{key} is at revision {record.revision if record else 'none'}")
        self.key = key
        self.record = record


class CompactedError(Exception):
    """The history before `revision` was compacted: a watch cannot resume there."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"history up to revision {revision} has been compacted")
        self.revision = revision


class StorageClosedError(Exception):
    """The store is closed or cannot be written to any more; the write did not happen."""


class UnknownOutcomeError(Exception):
    """The store did not answer: the write may have happened, or happen yet."""


class NotSealedError(Exception):
    """A value cannot be sealed now, so that it is not written; the message says why, in Kubernetes' words."""


class Storage(Protocol):
    """The methods of a back end. Keys are `/registry/...` paths; all methods are called on one event loop."""

    @property
    def revision(self) -> int:
        """The newest revision that is durable and that watchers have been called with."""
        ...

    async def current(self) -> int:
        """`revision`, once it is at least that of every write that anybody was told of before this call, also
        by others who write to the same store. Raises StorageClosedError."""
        ...

    @property
    def compacted(self) -> int:
        """The oldest revision at which the store can still be read; 0 when nothing was compacted."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other servers may write to it, too. Then it deletes what was written with a `ttl`."""
        ...

    async def get(self, key: str) -> Record | None: ...

    def is_stale(self, key: str) -> bool:
        """Whether the value is kept in another form than it would be written in now, so that writing it
        again, unchanged, is not in vain."""
        ...

    async def list(self, prefix: str, *, after: str = "", limit: int = 0) -> Listing:
        """Records whose key starts with `prefix` and sorts after `after`; at most `limit`, 0 for all."""
        ...

    async def create(self, key: str, value: bytes) -> int:
        """Returns the revision of the write. Raises KeyExistsError."""
        ...

    async def update(self, key: str, value: bytes, revision: int) -> int:
        """Replace the value last written at `revision`; returns the new revision. Raises ConflictError, also
        when the key does not exist."""
        ...

    async def delete(self, key: str, revision: int) -> int:
        """Delete the value last written at `revision`. Raises ConflictError, also when the key does not
        exist."""
        ...

    async def commit(self, writes: Sequence[Write]) -> int:
        """All of the writes, of different keys, or none. Returns the revision of the last. Raises
        KeyExistsError, ConflictError for the first that cannot be made; NotSealedError."""
        ...

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for every write from now on. Call what is returned to end the watch."""
        ...

    async def reached(self, revision: int) -> None:
        """Returns once `self.revision` is at least this."""
        ...

    async def history(self, prefix: str, after: int) -> Sequence[Event]:
        """Events with a revision above `after`, oldest first. Raises CompactedError."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget the history up to `revision`; the newest value of every key stays."""
        ...

    async def probe(self) -> None:
        """Raises StorageClosedError when a write would not be expected to succeed now (`/readyz`)."""
        ...

    async def close(self) -> None: ...


class SingleWrites:
    """The writes of one key, for every back end: transactions of one write."""

    async def create(self, key: str, value: bytes) -> int:
        return await self.commit([Write(key, value, None)])

    async def update(self, key: str, value: bytes, revision: int) -> int:
        return await self.commit([Write(key, value, revision)])

    async def delete(self, key: str, revision: int) -> int:
        return await self.commit([Write(key, None, revision)])

    async def commit(self, writes: Sequence[Write]) -> int:
        raise NotImplementedError


class Watchers:
    """The watchers of one store, called in the order they came, for every back end."""

    def __init__(self) -> None:
        self._watchers: dict[int, tuple[str, Watcher]] = {}
        """By number, in the order they came."""
        self._numbers = itertools.count()
        self._under: dict[str, list[int]] = {}
        """The numbers of those with a prefix."""
        self._found: dict[str, tuple[int, ...]] = {}
        """The numbers of those with a key in a directory, which writes have looked for."""
        self._awaited: dict[asyncio.Future[None], int] = {}

    def add(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        number = next(self._numbers)
        self._watchers[number] = (prefix, watcher)
        self._under.setdefault(prefix, []).append(number)
        self._found.clear()

        def end() -> None:
            if self._watchers.pop(number, None) is None:
                return
            self._under[prefix].remove(number)
            if not self._under[prefix]:
                del self._under[prefix]
            self._found.clear()

        return end

    async def reached(self, revision: int) -> None:
        """Returns once a group of writes up to `revision`, which is yet to come, was published."""
        reached = asyncio.get_running_loop().create_future()
        self._awaited[reached] = revision
        try:
            await reached
        finally:
            del self._awaited[reached]

    def publish(self, revision: int, events: Sequence[Event]) -> None:
        """Call those with a write under their prefix. A watcher may end its own watch or others'; one that
        was ended is not called any more."""
        found: dict[int, list[Event]] = {}
        for event in events:
            for number in self._watching(event.key):
                found.setdefault(number, []).append(event)
        for number in sorted(found):
            if (watching := self._watchers.get(number)) is None:
                continue
            prefix, watcher = watching
            try:
                watcher(revision, found[number])
            except Exception:
                # One broken watcher must not keep the others from news, nor a writer from its answer.
                _log.exception("a watcher of %s failed at revision %d", prefix, revision)
        for reached, awaited in self._awaited.items():
            if awaited <= revision and not reached.done():
                reached.set_result(None)

    def _watching(self, key: str) -> tuple[int, ...]:
        """The numbers of those who watch a key. Each write asks, and a prefix that ends where a directory
        does is one of all its keys or of none: that is kept."""
        directory = key[: key.rfind("/") + 1]
        found = self._found.get(directory)
        if found is None:
            under = (numbers for prefix, numbers in self._under.items() if key.startswith(prefix))
            found = tuple(itertools.chain.from_iterable(under))
            longer = (one for one in self._under if len(one) > len(directory) and one.startswith(directory))
            if not any(longer):
                if len(self._found) >= MOST_DIRECTORIES:
                    self._found.clear()
                self._found[directory] = found
        return found
