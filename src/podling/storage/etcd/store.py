"""The store in etcd: what is read comes from memory, which one watch of all keys keeps as etcd has it.

A write is one transaction that compares the revision of its key. It is answered once the watch has brought
what it wrote, so the promise of `storage/interface.py` holds within this process; what other servers write to
the same etcd comes by the same watch. The writes of one transaction share its revision.

A member that fails may have made a write that it did not answer. The same transaction is then sent to the
next: if the first was made, the second is refused, and the watch has brought what the first wrote, whatever
was written over it since. What makes a key is not sent again: it could be made, deleted, and made once more.
Unless the watch brings it, it is unknown whether it was made; so it is of any write when no member answers
for LONGEST, or the watch itself has a gap.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from google.protobuf.message import Message
from sortedcontainers import SortedDict

import podling.storage.etcd.etcd_pb2 as pb
from podling.storage.etcd.connection import Answer, Connection, EtcdError
from podling.storage.etcd.keys import in_etcd, of_etcd
from podling.storage.etcd.leases import Leases
from podling.storage.interface import (
    CompactedError,
    ConflictError,
    Event,
    KeyExistsError,
    Listing,
    Record,
    SingleWrites,
    StorageClosedError,
    UnknownOutcomeError,
    Watcher,
    Watchers,
    Write,
)

COMPACTED = b"compact_rev_key"
"""Where API servers agree on what was compacted, as kube-apiserver does."""
ALL_FROM, ALL_TO = b"\0", b"\0"
EMPTY = 1
"""The revision of an etcd in which nothing was written: no event has it."""
LEASE_LOST = "requested lease not found"
PAGE = 500
LONGEST = 10.0
"""Seconds in which a write is tried at one member after the other."""
PAUSES = (0.02, 0.05, 0.1, 0.25, 0.5)
"""Seconds before a member is asked again, by the failures before; the last one from then on."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


Read = Callable[[str, bytes], bytes]
"""A value as podling keeps it, by its key and as it stands in etcd: another server may write other forms.
Raises UnreadableError."""


class UnreadableError(Exception):
    """A value is of a form that podling cannot read; the message names its key."""


def as_it_is(key: str, value: bytes) -> bytes:
    return value


async def open(connection: Connection, read: Read = as_it_is) -> EtcdStorage:
    """Read all there is, and follow it. Raises EtcdError once no member answered for LONGEST."""
    found, revision = await _patiently(partial(read_all, connection))
    compacted = found.pop(COMPACTED, None)
    return EtcdStorage(connection, read, found, revision, int(compacted.value) if compacted else 0)


class LostAnswerError(Exception):
    """A member that failed may have made a key, or make it yet."""


class Trail:
    """What the watch has brought of the keys of a transaction since it was first sent; not all of it if it
    `has_gap`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.has_gap = False

    def made(self, writes: Sequence[Write]) -> int:
        """The revision at which etcd has made the transaction; 0 if it has not."""
        found = {
            event.revision
            for write in writes
            for event in self.events
            if (event.key, event.value) == (write.key, write.value)
            and write.revision == (event.previous.revision if event.previous else None)
        }
        return max(found, default=0)


class EtcdStorage(SingleWrites):
    is_shared = True

    def __init__(
        self,
        connection: Connection,
        read: Read,
        standing: Mapping[bytes, pb.KeyValue],
        revision: int,
        compacted: int,
    ) -> None:
        self._connection = connection
        self._read = read
        self._records: SortedDict[str, Record] = SortedDict(
            {record.key: record for one in standing.values() if (record := self._record(one))}
        )
        self._revision = revision
        self._compacted = compacted
        self._watchers = Watchers()
        self._leases = Leases(self._grant, time.monotonic)
        self._histories: dict[tuple[int, int], asyncio.Task[Sequence[Event]]] = {}
        """Being asked for, by the revisions after which they begin and with which they end."""
        self._writes: set[asyncio.Task[int]] = set()
        self._trails: dict[str, list[Trail]] = {}
        """Of the writes under way, by key."""
        self._asking: asyncio.Task[int] | None = None
        """Will ask in the next turn of the loop."""
        self._reads: set[asyncio.Task[int]] = set()
        self._closed = False
        self._lost = ""
        """Why the watch does not go on; empty while it does."""
        self._following = asyncio.get_running_loop().create_task(self._follow())
        self._following.add_done_callback(self._stopped)

    @property
    def revision(self) -> int:
        return self._revision

    async def current(self) -> int:
        self._check_open()

        async def ask() -> int:
            # All of one turn of the loop share a question. Who comes from here on is not answered by it: what
            # is written meanwhile may not be in the answer.
            self._asking = None
            request = pb.RangeRequest(key=COMPACTED, count_only=True)
            try:
                answer = await _patiently(lambda: self._ask("KV/Range", request, pb.RangeResponse))
            except EtcdError as error:
                raise StorageClosedError(str(error)) from error
            await self.reached(answer.header.revision)
            return self._revision

        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(ask())
            self._reads.add(self._asking)
            self._asking.add_done_callback(self._reads.discard)
            self._asking.add_done_callback(_retrieve)
        return await asyncio.shield(self._asking)

    @property
    def compacted(self) -> int:
        return self._compacted

    async def get(self, key: str) -> Record | None:
        self._check_open()
        record: Record | None = self._records.get(key)
        return record

    def is_stale(self, key: str) -> bool:
        return False

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
        self._check_open()
        keys = [in_etcd(write.key) for write in writes]
        for write, key in zip(writes, keys, strict=True):
            if of_etcd(key) != write.key:
                raise ValueError(f"{write.key} is no key of an object")
        # A caller that is cancelled does not take its write back.
        task = asyncio.get_running_loop().create_task(self._commit(writes, [key.encode() for key in keys]))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        task.add_done_callback(_retrieve)
        return await asyncio.shield(task)

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
        if self._revision <= max(after, EMPTY):
            return []
        # All caches ask for the same at a start.
        asked = after, self._revision
        if asked not in self._histories:
            task = asyncio.get_running_loop().create_task(self._history(*asked))
            self._histories[asked] = task
            task.add_done_callback(lambda _: self._histories.pop(asked))
            task.add_done_callback(_retrieve)
        return [e for e in await asyncio.shield(self._histories[asked]) if e.key.startswith(prefix)]

    async def compact(self, revision: int) -> None:
        """What another server compacted meanwhile stands: the number is theirs who write it first."""
        self._check_open()
        revision = min(revision, self._revision)
        if revision <= self._compacted:
            return
        try:
            standing = await self._ask("KV/Range", pb.RangeRequest(key=COMPACTED), pb.RangeResponse)
            version = standing.kvs[0].version if standing.kvs else 0
            txn = pb.TxnRequest(
                compare=[pb.Compare(target=pb.Compare.VERSION, key=COMPACTED, version=version)],
                success=[pb.RequestOp(put=pb.PutRequest(key=COMPACTED, value=str(revision).encode()))],
            )
            answer = await self._ask("KV/Txn", txn, pb.TxnResponse)
            await self.reached(answer.header.revision)
            if answer.succeeded:
                await self._ask("KV/Compact", pb.CompactionRequest(revision=revision), pb.CompactionResponse)
                self._compacted = max(self._compacted, revision)
        except EtcdError as error:
            if not error.failed:
                # Somebody compacted further than this.
                return
            raise StorageClosedError(str(error)) from error

    async def probe(self) -> None:
        self._check_open()
        if self._lost:
            raise StorageClosedError(self._lost)
        try:
            await self._ask("KV/Range", pb.RangeRequest(key=COMPACTED, count_only=True), pb.RangeResponse)
            status = await self._ask("Maintenance/Status", pb.StatusRequest(), pb.StatusResponse)
        except EtcdError as error:
            raise StorageClosedError(str(error)) from error
        if status.errors:
            # It is read, but takes no writes.
            raise StorageClosedError(f"etcd says: {', '.join(status.errors)}")

    async def close(self) -> None:
        """Let the writes under way be answered, then leave etcd."""
        if self._closed:
            return
        self._closed = True
        if self._writes:
            await asyncio.wait(self._writes)
        tasks = self._following, *self._reads, *self._histories.values()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await self._connection.close()

    async def _commit(self, writes: Sequence[Write], keys: Sequence[bytes]) -> int:
        """`keys` are etcd's."""
        trail = Trail()
        for write in writes:
            self._trails.setdefault(write.key, []).append(trail)
        try:
            return await self._transact(writes, keys, trail)
        finally:
            for write in writes:
                self._trails[write.key].remove(trail)
                if not self._trails[write.key]:
                    del self._trails[write.key]

    async def _transact(self, writes: Sequence[Write], keys: Sequence[bytes], trail: Trail) -> int:
        tries = 0

        async def ask() -> pb.TxnResponse:
            nonlocal tries
            tries += 1
            leases = [write.ttl and await self._leases.lease(write.ttl) for write in writes]
            request = pb.TxnRequest(
                compare=[
                    pb.Compare(target=pb.Compare.MOD, key=key, mod_revision=write.revision or 0)
                    for key, write in zip(keys, writes, strict=True)
                ],
                success=list(map(_operation, keys, writes, leases)),
                failure=[pb.RequestOp(range=pb.RangeRequest(key=key)) for key in keys],
            )
            try:
                return await self._ask("KV/Txn", request, pb.TxnResponse)
            except EtcdError as error:
                if any(leases) and LEASE_LOST in str(error):
                    # It ended meanwhile by etcd's clock, so nothing was written.
                    self._leases.forget()
                    tries -= 1
                    return await ask()
                if error.sent and any(write.revision is None for write in writes):
                    raise LostAnswerError(str(error)) from error
                raise

        try:
            answer = await _patiently(ask)
        except LostAnswerError as lost:
            with suppress(StorageClosedError):
                await self.current()
            if made := trail.made(writes):
                return made
            raise UnknownOutcomeError(str(lost)) from lost
        except EtcdError as error:
            failure = UnknownOutcomeError if error.failed else StorageClosedError
            raise failure(str(error)) from error
        # The answer of a refusal, too: who decides anew looks into a cache.
        await self.reached(answer.header.revision)
        if answer.succeeded:
            return answer.header.revision
        if tries > 1 and (made := trail.made(writes)):
            return made
        if tries > 1 and trail.has_gap:
            raise UnknownOutcomeError("etcd did not answer a write, and has forgotten what came of it")
        standing = [self._record(one.range.kvs[0]) if one.range.kvs else None for one in answer.responses]
        for write, record in zip(writes, standing, strict=True):
            if write.revision is None and record is not None:
                raise KeyExistsError(record)
            if write.revision != (record.revision if record else None):
                raise ConflictError(write.key, record)
        raise AssertionError("etcd refused a transaction that nothing stands against")

    async def _follow(self) -> None:
        failures = 0
        while True:
            try:
                async with aclosing(changes_after(self._connection, self._revision)) as answers:
                    async for revision, events in answers:
                        failures, self._lost = 0, ""
                        self._hear(revision, events)
            except CompactedError:
                _log.warning("etcd forgot what was written since %d: all is read again", self._revision)
                with suppress(EtcdError):
                    await self._read_again()
            except EtcdError as error:
                self._lost = f"etcd is not followed: {error}"
                if not failures:
                    _log.warning("%s", self._lost)
                await asyncio.sleep(_pause(failures))
                failures += 1

    def _stopped(self, following: asyncio.Task[None]) -> None:
        if not self._closed:
            why = "it was cancelled" if following.cancelled() else repr(following.exception())
            self._lost = f"etcd is not followed any more: {why}"
            _log.error("%s", self._lost)

    def _hear(self, revision: int, events: Iterable[pb.Event]) -> None:
        heard: list[Event] = []
        newest: dict[str, Record | None] = {}
        for event in events:
            one, is_put = event.kv, event.type == pb.Event.PUT
            if one.key == COMPACTED:
                if is_put:
                    self._compacted = max(self._compacted, int(one.value))
                continue
            key = of_etcd(one.key.decode())
            if key is not None:
                previous = newest[key] if key in newest else self._records.get(key)
                try:
                    value = self._read(key, one.value) if is_put else None
                except UnreadableError as error:
                    # It stays as it was known: what another server knows better must not stop this one.
                    _log.error("%s", error)
                    continue
                newest[key] = None if value is None else Record(key, value, one.mod_revision)
                heard.append(Event(one.mod_revision, key, value, previous))
        self._publish(revision, heard)

    def _publish(self, revision: int, events: Sequence[Event]) -> None:
        for event in events:
            for trail in self._trails.get(event.key, ()):
                trail.events.append(event)
            if event.value is None:
                self._records.pop(event.key, None)
            else:
                self._records[event.key] = Record(event.key, event.value, event.revision)
        self._revision = max(self._revision, revision)
        self._watchers.publish(self._revision, events)

    async def _read_again(self) -> None:
        """Tell watchers how what stands now differs from what they know."""
        for trails in self._trails.values():
            for trail in trails:
                trail.has_gap = True
        standing, revision = await read_all(self._connection)
        found = {key: one for one in standing.values() if (key := of_etcd(one.key.decode()))}
        events = [
            Event(revision, key, None, record) for key, record in self._records.items() if key not in found
        ]
        for key, one in found.items():
            known = self._records.get(key)
            if known is not None and known.revision == one.mod_revision:
                continue
            if known is not None and one.create_revision > known.revision:
                # Another object took its place.
                events.append(Event(one.create_revision, key, None, known))
                known = None
            events.append(_event(one, key, self._record(one), known))
        self._publish(revision, sorted(events, key=lambda event: event.revision))

    async def _history(self, after: int, until: int) -> Sequence[Event]:
        found: list[Event] = []
        try:
            async with aclosing(changes_after(self._connection, after, prev_kv=True)) as answers:
                async for revision, events in answers:
                    found += [
                        _event(
                            event.kv,
                            key,
                            self._record(event.kv) if event.type == pb.Event.PUT else None,
                            self._record(event.prev_kv) if event.HasField("prev_kv") else None,
                        )
                        for event in events
                        if event.kv.mod_revision <= until and (key := of_etcd(event.kv.key.decode()))
                    ]
                    if revision >= until:
                        break
        except EtcdError as error:
            raise StorageClosedError(str(error)) from error
        return found

    def _record(self, one: pb.KeyValue) -> Record | None:
        """None for what is no object."""
        key = of_etcd(one.key.decode())
        return None if key is None else Record(key, self._read(key, one.value), one.mod_revision)

    async def _grant(self, seconds: int) -> int:
        request = pb.LeaseGrantRequest(TTL=seconds)
        return (await self._ask("Lease/LeaseGrant", request, pb.LeaseGrantResponse)).ID

    async def _ask(self, method: str, request: Message, answer: type[Answer]) -> Answer:
        return await self._connection.ask(f"/etcdserverpb.{method}", request, answer)

    def _check_open(self) -> None:
        if self._closed:
            raise StorageClosedError("the store is closed")


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer of the first member that gives one. Raises EtcdError once none did for LONGEST."""
    until, failures = time.monotonic() + LONGEST, 0
    while True:
        try:
            return await ask()
        except EtcdError as error:
            if not error.failed or time.monotonic() > until:
                raise
            await asyncio.sleep(_pause(failures))
            failures += 1


async def read_all(connection: Connection) -> tuple[dict[bytes, pb.KeyValue], int]:
    """All keys as they were at one revision, PAGE at a time, and that revision. Raises EtcdError."""
    found: dict[bytes, pb.KeyValue] = {}
    revision, begin, more = 0, ALL_FROM, True
    while more:
        request = pb.RangeRequest(key=begin, range_end=ALL_TO, limit=PAGE, revision=revision)
        answer = await connection.ask("/etcdserverpb.KV/Range", request, pb.RangeResponse)
        revision = revision or answer.header.revision
        found.update({one.key: one for one in answer.kvs})
        more = answer.more
        begin = answer.kvs[-1].key + b"\0" if more else b""
    return found, revision


async def changes_after(
    connection: Connection, after: int, *, prev_kv: bool = False
) -> AsyncGenerator[tuple[int, Sequence[pb.Event]]]:
    """Whole revisions as they are written, with the last of them. Raises CompactedError, EtcdError."""
    request = pb.WatchCreateRequest(
        key=ALL_FROM, range_end=ALL_TO, start_revision=after + 1, prev_kv=prev_kv, fragment=True
    )
    begun: list[pb.Event] = []
    async with aclosing(connection.watch(request)) as answers:
        async for answer in answers:
            if answer.compact_revision:
                raise CompactedError(answer.compact_revision)
            if answer.canceled:
                raise EtcdError(f"the watch was refused: {answer.cancel_reason}", failed=True)
            begun += answer.events
            if begun and not answer.fragment:
                # What its header says is how far etcd has come: of a long past this is a part.
                yield begun[-1].kv.mod_revision, begun
                begun = []


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take the error of a task that others wait for: asyncio would log it if all of them were cancelled."""
    if not task.cancelled():
        task.exception()


def _pause(failures: int) -> float:
    return PAUSES[min(failures, len(PAUSES) - 1)]


def _operation(key: bytes, write: Write, lease: int) -> pb.RequestOp:
    if write.value is None:
        return pb.RequestOp(delete_range=pb.DeleteRangeRequest(key=key))
    return pb.RequestOp(put=pb.PutRequest(key=key, value=write.value, lease=lease))


def _event(one: pb.KeyValue, key: str, now: Record | None, previous: Record | None) -> Event:
    return Event(one.mod_revision, key, now.value if now else None, previous)
