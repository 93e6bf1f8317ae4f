"""The store on the event loop: it checks writes, groups them, and publishes them once the worker made them
durable.

A write is checked against the newest value of its key, durable or not, and takes its revision at once, so
that a group needs no query. It becomes *public* (seen by reads and watchers, and answered) only when its
group is durable. A refusal that depends on a write not yet durable waits for that write.

When a group cannot be written, it and all writes waiting behind it fail with StorageClosedError, because
those depended on it. Their revisions, which nobody has seen, are used again. After a full disk the store goes
on; after any other fault it refuses every write until it is opened again.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from sortedcontainers import SortedDict

from podling.process.waits import Turn
from podling.storage.interface import (
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
from podling.storage.sealing import Sealing
from podling.storage.sqlite.log import Log, State, is_passing
from podling.storage.sqlite.whole import fault
from podling.storage.sqlite.worker import Worker

GROUP_ROWS = 128
"""Most transactions that share one fsync; further ones wait for the next."""

COMPACTION_STEP = 1_000
"""Revisions compacted in one transaction, which is the longest that a write waits for compaction."""

T = TypeVar("T")


class _Commit(NamedTuple):
    """A transaction under way: its events, or the error that refuses it."""

    events: Sequence[Event]
    refusal: Exception | None
    answer: asyncio.Future[int]


async def open(path: str | os.PathLike[str], sealing: Sealing | None = None) -> SqliteStorage:
    """Open or make the data file; `sealing` says what of it is sealed. Raises DataFileError with what to
    tell the user."""
    worker = Worker()
    try:
        log = await worker.call(partial(Log, Path(path), sealing))
        try:
            return SqliteStorage(worker, log, await worker.call(log.load), sealing)
        except BaseException:
            await worker.call(log.close)
            raise
    except sqlite3.Error as error:
        worker.stop()
        raise fault(Path(path), error) from error
    except BaseException:
        worker.stop()
        raise


class SqliteStorage(SingleWrites):
    is_shared = False

    def __init__(self, worker: Worker, log: Log, state: State, sealing: Sealing | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = worker
        self._log = log
        self._records: SortedDict[str, Record] = SortedDict(state.records)
        self._revision = self._given = state.revision
        self._compacted = state.compacted
        self._sealing = sealing
        self._marks = dict(state.marks)
        self._on_their_way: dict[str, Event] = {}
        self._waiting: list[_Commit] = []
        self._group: list[_Commit] = []
        self._watchers = Watchers()
        self._closed = False
        self._fault: Exception | None = None
        self._failed: Exception | None = None

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
        record: Record | None = self._records.get(key)
        return record

    def is_stale(self, key: str) -> bool:
        return self._sealing is not None and self._sealing.is_stale(key, self._marks.get(key, b""))

    async def unknown_to(self, sealing: Sealing) -> str | None:
        """The key of a value that could not be opened with these keys alone, if there is one."""
        turn = Turn()
        keys: tuple[str, ...] = tuple(self._records)
        for key in keys:
            await turn.share()
            if key in self._records and not sealing.knows(key, self._marks.get(key, b"")):
                return key
        return None

    async def list(self, prefix: str, *, after: str = "", limit: int = 0) -> Listing:
        self._check_open()
        found: list[Record] = []
        for key in self._records.irange(max(prefix, after)):
            if not key.startswith(prefix) or (limit and len(found) == limit):
                break
            if key != after:
                found.append(self._records[key])
        return Listing(found, self._revision)

    async def commit(self, writes: Sequence[Write]) -> int:
        self._check_writable()
        refusal: Exception | None = None
        standing: list[Record | None] = []
        for write in writes:
            # What UTF-8 cannot say, or nobody can seal, must fail here, not together with a whole group.
            write.key.encode()
            if self._sealing is not None and write.value is not None:
                self._sealing.check(write.key)
            newest = self._newest(write.key)
            standing.append(newest)
            if write.revision == (newest.revision if newest else None):
                continue
            refusal = ConflictError(write.key, newest)
            if newest is not None and write.revision is None:
                refusal = KeyExistsError(newest)
            if write.key not in self._on_their_way:
                raise refusal
            break
        events = [] if refusal else list(map(self._event, writes, standing))
        answer: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append(_Commit(events, refusal, answer))
        if not self._group and len(self._waiting) == 1:
            # Not at once: tasks that are about to write in this turn of the loop share the fsync.
            self._loop.call_soon(self._start_group)
        return await answer

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        self._check_open()
        return self._watchers.add(prefix, watcher)

    async def reached(self, revision: int) -> None:
        if self._revision < revision:
            await self._watchers.reached(revision)

    async def history(self, prefix: str, after: int) -> Sequence[Event]:
        return await self._call(partial(self._log.history, prefix, after, self._revision))

    async def compact(self, revision: int) -> None:
        self._check_open()
        target = min(revision, self._revision)
        while self._compacted < target:
            upto = min(target, self._compacted + COMPACTION_STEP)
            await self._call(partial(self._log.compact, upto))
            self._compacted = max(self._compacted, upto)

    async def probe(self) -> None:
        self._check_writable()
        await self._call(self._log.probe)
        if self._failed:
            raise StorageClosedError(f"the last write failed: {self._failed}")

    async def close(self) -> None:
        """Let the writes under way become durable and answered, then close the file."""
        if self._closed:
            return
        self._closed = True
        while self._group or self._waiting:
            await self._worker.call(lambda: None)
        await self._worker.call(self._log.close)
        self._worker.stop()

    def _newest(self, key: str) -> Record | None:
        if event := self._on_their_way.get(key):
            return None if event.value is None else Record(key, event.value, event.revision)
        record: Record | None = self._records.get(key)
        return record

    def _event(self, write: Write, previous: Record | None) -> Event:
        self._given += 1
        event = Event(self._given, write.key, write.value, previous)
        self._on_their_way[write.key] = event
        return event

    def _start_group(self) -> None:
        self._group, self._waiting = self._waiting[:GROUP_ROWS], self._waiting[GROUP_ROWS:]
        if self._group:
            events = [event for commit in self._group for event in commit.events]
            self._worker.submit(partial(self._log.append, events), partial(self._written, events))

    def _written(
        self, events: Sequence[Event], marks: Mapping[str, bytes] | None, error: Exception | None
    ) -> None:
        if error:
            self._abandon(error)
            return
        self._failed = None
        group = self._group
        # Strictly before telling of this group: the disk works on the next one meanwhile.
        self._start_group()
        self._publish(events, marks or {})
        for commit in group:
            _answer(commit)

    def _publish(self, events: Sequence[Event], marks: Mapping[str, bytes]) -> None:
        for event in events:
            if event.value is None:
                del self._records[event.key]
            else:
                self._records[event.key] = Record(event.key, event.value, event.revision)
            if self._on_their_way[event.key] is event:
                del self._on_their_way[event.key]
            if self._marks:
                self._marks.pop(event.key, None)
            self._revision = event.revision
        self._marks.update(marks)
        if events:
            self._watchers.publish(self._revision, events)

    def _abandon(self, error: Exception) -> None:
        self._failed = error
        abandoned = self._group + self._waiting
        self._group, self._waiting = [], []
        self._on_their_way.clear()
        self._given = self._revision
        for commit in abandoned:
            if not commit.answer.done():
                commit.answer.set_exception(self._failure(error))

    async def _call(self, job: Callable[[], T]) -> T:
        self._check_open()
        try:
            return await self._worker.call(job)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> StorageClosedError:
        if not is_passing(error):
            self._fault = error
        failure = StorageClosedError(f"the data file failed: {error}")
        failure.__cause__ = error
        return failure

    def _check_open(self) -> None:
        if self._closed:
            raise StorageClosedError("the store is closed")

    def _check_writable(self) -> None:
        self._check_open()
        if self._fault:
            raise StorageClosedError(f"the data file failed: {self._fault}")


def _answer(commit: _Commit) -> None:
    """Answer the caller, unless it was cancelled; the writes stand all the same."""
    if commit.answer.done():
        return
    if commit.refusal:
        commit.answer.set_exception(commit.refusal)
    else:
        commit.answer.set_result(commit.events[-1].revision)
