"""The cache of one resource: all objects in order of key, the window of recent changes, and the watchers.

The storage calls the cache before it answers a write, so that a client that has the answer finds the write
here. Reads and watches never go to the storage, and decode an object only when a caller needs it decoded. A
watch may resume within the window without listing again.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sortedcontainers import SortedDict

from podling.storage.interface import CompactedError, Event, Record, Storage
from podling.watch.audience import Audience, Only
from podling.watch.entry import (
    Change,
    Decoder,
    Entry,
    Frames,
    JsonFrames,
    Match,
    SelectedEvent,
    SharedFrames,
    select,
    splice,
)
from podling.watch.subscription import Subscription

__all__ = ["Cache", "Entry", "ResourceCache", "Selection", "splice"]


WINDOW = 10_000
"""Changes of a resource that a watch may resume from."""
WINDOW_BYTES = 32 << 20
"""Bytes of the objects in them: whoever writes large objects again and again has a shorter past."""
FORGOTTEN_AT_ONCE = 500
"""Changes: to free them takes half a millisecond."""
LEAST = 100
"""Changes of a resource that are never too old, so that a watch of what hardly ever changes resumes. As many
as Kubernetes' watch cache has at least."""


class Window:
    """The changes after revision `start`, at most `size` of them and `most_bytes` in their objects: a further
    one pushes out the oldest."""

    def __init__(self, size: int, start: int = 0, most_bytes: int = WINDOW_BYTES) -> None:
        self._size = size
        self._start = start
        self._most_bytes = most_bytes
        self._bytes = 0
        self._changes: deque[Change] = deque()

    def extend(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._changes.append(change)
            self._bytes += change.size
        while len(self._changes) > self._size or self._bytes > self._most_bytes:
            self._drop()

    def forget(self, revision: int) -> int:
        """The changes up to `revision` are old: FORGOTTEN_AT_ONCE of them go, and none of the last LEAST of
        all. Returns how many have gone."""
        most = min(FORGOTTEN_AT_ONCE, len(self._changes) - LEAST)
        forgotten = 0
        while forgotten < most and self._changes[0].revision <= revision:
            self._drop()
            forgotten += 1
        return forgotten

    def since(self, revision: int) -> Sequence[Change]:
        """The changes above `revision`, oldest first. Raises CompactedError."""
        if revision < self._start:
            raise CompactedError(self._start)
        newest_first: list[Change] = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            newest_first.append(change)
        return newest_first[::-1]

    def _drop(self) -> None:
        oldest = self._changes.popleft()
        self._start = oldest.revision
        self._bytes -= oldest.size


class Selection(NamedTuple):
    """A page of a list at `revision`: `more` says whether entries follow it, `remaining` how many."""

    entries: Sequence[Entry]
    revision: int
    more: bool
    remaining: int


class Cache(Protocol):
    """What of a cache is read: see `ResourceCache`."""

    @property
    def revision(self) -> int: ...

    @property
    def changes(self) -> int: ...

    async def reached(self, revision: int) -> None: ...

    def get(self, key: str) -> Entry | None: ...

    def select(
        self,
        prefix: str,
        start: str = "",
        limit: int = 0,
        revision: int | None = None,
    ) -> Selection: ...

    def watch(
        self,
        prefix: str,
        revision: int | None = None,
        match: Match | None = None,
        bookmarks: bool = False,
        initial: bool | None = None,
        frames: Frames | None = None,
        only: Only | None = None,
    ) -> Subscription: ...


class ToldCache(Cache, Protocol):
    """A cache that hears of writes from who makes them."""

    def expect(self, key: str, value: bytes, know: Callable[[Entry], None]) -> None: ...

    def forget(self, key: str) -> None: ...


class ResourceCache:
    """`prefix` is the prefix of all keys of the resource; `decode` makes an object of its bytes, with its
    resourceVersion; `kind` and `api_version` are those of bookmarks."""

    def __init__(
        self,
        storage: Storage,
        prefix: str,
        decode: Callable[[bytes], Any],
        *,
        kind: str,
        api_version: str,
        window: int = WINDOW,
    ) -> None:
        self._storage = storage
        self._prefix = prefix
        self._decoder = Decoder(decode)
        self._frames = JsonFrames(kind, api_version)
        self._window_size = window
        self._window: Window = Window(window)
        self._entries: SortedDict[str, Entry] = SortedDict()
        self._loaded = False
        self.bytes = 0
        """Of all objects as they are stored."""
        self.changes = 0
        """How often anything in it has changed: what was made of all objects is made again when this has
        moved on."""
        self._audiences: dict[str, Audience] = {}
        self._watchers = 0
        self._end_watch: Callable[[], None] = lambda: None
        self._listener: Callable[[str], None] = lambda key: None
        self._expected: dict[str, tuple[bytes, Callable[[Entry], None]]] = {}
        """Writes under way, by key."""
        self._sent_to_ended = 0
        self._closed = False

    @property
    def revision(self) -> int:
        """The revision of the store up to which this cache has every write."""
        # It moves on as the watchers are called: nothing else runs between.
        return self._storage.revision if self._loaded else 0

    @property
    def size(self) -> int:
        """The number of objects."""
        return len(self._entries)

    @property
    def watchers(self) -> int:
        return self._watchers

    @property
    def events_sent(self) -> int:
        """The number of events sent to all watchers so far, past ones included."""
        return self._sent_to_ended + sum(one.sent for one in self._all_subscriptions())

    async def start(self) -> None:
        """Load the objects and the uncompacted history, then follow the storage."""
        early: list[tuple[int, Sequence[Event]]] = []
        self._end_watch = self._storage.watch(self._prefix, lambda *news: early.append(news))
        listing = await self._storage.list(self._prefix)
        history_start = 0
        while True:
            try:
                history = await self._storage.history(self._prefix, history_start)
                break
            except CompactedError as compacted:
                history_start = compacted.revision
        self._window = Window(self._window_size, min(history_start, listing.revision))
        # Replayed first: an object that has not changed since shares its entry with the window.
        self._window.extend([self._apply(event) for event in history if event.revision <= listing.revision])
        self._entries.update({record.key: self._entry(record) for record in listing.records})
        self.bytes = sum(len(one.value) for one in self._entries.values())
        self._loaded = True
        self.changes += 1
        # No await from here on, so that no event comes twice or goes missing.
        for revision, events in early:
            self._hear(revision, [event for event in events if event.revision > listing.revision])
        self._end_watch()
        self._end_watch = self._storage.watch(self._prefix, self._hear)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the key of every object there is, and again as one changes."""
        self._listener = listener
        for key in self._entries:
            listener(key)

    def expect(self, key: str, value: bytes, know: Callable[[Entry], None]) -> None:
        """Have `know` called with the entry of `value` before anybody sees it: who writes it has its object,
        so nobody need decode it. To be ended by `forget`."""
        self._expected[key] = value, know

    def forget(self, key: str) -> None:
        self._expected.pop(key, None)

    def close(self) -> None:
        """End all watches, and every later one at once."""
        self._closed = True
        self._end_watch()
        for subscription in self._all_subscriptions():
            subscription.close()

    def get(self, key: str) -> Entry | None:
        entry: Entry | None = self._entries.get(key)
        return entry

    def select(
        self,
        prefix: str,
        start: str = "",
        limit: int = 0,
        revision: int | None = None,
    ) -> Selection:
        """The entries under `prefix` in order of key, from the first that is not before `start`; `limit` 0 is
        no limit.

        With `revision`: the entries as they were then. Raises CompactedError when that revision was compacted
        or is out of the window.
        """
        if revision is not None and revision < (compacted := self._storage.compacted):
            # Although the window may go back further: that is for watches, as Kubernetes' watch cache is.
            raise CompactedError(compacted)
        past = {} if revision is None else self._past(prefix, revision)
        at = self.revision if revision is None else revision
        if not self._entries and not past:
            # Of most kinds that admission asks for there is nothing.
            return Selection([], at, False, 0)
        entries = self._with_past(past, prefix, start) if past else self._from(prefix, start)
        if not limit:
            return Selection(list(entries), at, False, 0)
        found: list[Entry] = []
        for entry in entries:
            if len(found) == limit:
                return Selection(found, at, True, self._count_from(prefix, entry.key, past))
            found.append(entry)
        return Selection(found, at, False, 0)

    def watch(
        self,
        prefix: str,
        revision: int | None = None,
        match: Match | None = None,
        bookmarks: bool = False,
        initial: bool | None = None,
        frames: Frames | None = None,
        only: Only | None = None,
    ) -> Subscription:
        """Watch what is under `prefix` for changes above `revision`. `only`: what `match` asks of a field at
        least, so that it is not asked about every change.

        Without a revision, or from 0, the existing objects come first as ADDED. `initial` is
        sendInitialEvents (meta/v1 ListOptions): True sends the existing objects whatever the revision is, and
        for a watcher with `bookmarks` a bookmark after them; False never sends them. Raises CompactedError
        when `revision` is out of the window.
        """
        frames = frames or self._frames
        backlog: Iterator[bytes] = iter(())
        if initial or (initial is None and not revision):
            backlog = self._initial_events(prefix, match, frames, mark_end=bool(initial) and bookmarks)
        elif revision:
            missed = [change for change in self._window.since(revision) if change.key.startswith(prefix)]
            backlog = (frames.event(seen) for change in missed if (seen := select(change, match)))
        subscription = Subscription(
            backlog, revision or 0, match, frames, bookmarks, lambda ended: self._drop(prefix, ended, only)
        )
        self._audiences.setdefault(prefix, Audience()).add(subscription, only)
        self._watchers += 1
        if self._closed:
            subscription.close()
        return subscription

    async def reached(self, revision: int) -> None:
        """Returns once the cache has every write up to `revision`."""
        await self._storage.reached(revision)

    def bookmark(self) -> None:
        """Send a bookmark to every watcher that takes them."""
        for subscription in self._all_subscriptions():
            subscription.bookmark(self.revision)

    def forget_past(self, revision: int) -> int:
        """No watch need resume from before `revision` any more: some of those changes go that the store has
        compacted, too, so no list as of then could go on either. Returns how many; 0 when no more are to."""
        return self._window.forget(min(revision, self._storage.compacted))

    def _hear(self, _: int, events: Sequence[Event]) -> None:
        changes = [self._apply(event) for event in events]
        self._window.extend(changes)
        self.changes += 1
        for change in changes:
            self._listener(change.key)
        shared = SharedFrames()
        for prefix, audience in tuple(self._audiences.items()):
            if near := [change for change in changes if change.key.startswith(prefix)]:
                audience.offer(near, shared)

    def _apply(self, event: Event) -> Change:
        old = self.get(event.key)
        self.bytes += len(event.value or b"") - (len(old.value) if old is not None else 0)
        if old is None and event.previous:
            old = self._entry(event.previous)
        if event.value is None:
            self._entries.pop(event.key, None)
            return Change(event.revision, event.key, old, None)
        new = self._entry(Record(event.key, event.value, event.revision))
        expected = self._expected.get(event.key)
        if expected is not None and expected[0] is event.value:
            expected[1](new)
        self._entries[event.key] = new
        return Change(event.revision, event.key, old, new)

    def _entry(self, record: Record) -> Entry:
        known = self.get(record.key)
        if known and known.revision == record.revision:
            return known
        return Entry(record.key, record.revision, record.value, self._decoder)

    def _initial_events(
        self, prefix: str, match: Match | None, frames: Frames, mark_end: bool
    ) -> Iterator[bytes]:
        # The entries are taken now, the frames are made while the watcher reads them.
        entries, revision = self.select(prefix).entries, self.revision

        def events() -> Iterator[bytes]:
            for entry in entries:
                if match is None or match(entry):
                    yield frames.event(SelectedEvent("ADDED", entry, entry.revision))
            if mark_end:
                yield frames.bookmark(revision, initial_events_end=True)

        return events()

    def _from(self, prefix: str, start: str) -> Iterator[Entry]:
        if not self._entries:
            return iter(())
        keys = self._entries.irange(max(prefix, start), _behind(prefix), inclusive=(True, False))
        return map(self._entries.__getitem__, keys)

    def _past(self, prefix: str, revision: int) -> dict[str, Entry | None]:
        """The objects that have changed since `revision`, as they were then."""
        past: dict[str, Entry | None] = {}
        for change in self._window.since(revision):
            if change.key.startswith(prefix):
                past.setdefault(change.key, change.old)
        return past

    def _with_past(self, past: Mapping[str, Entry | None], prefix: str, start: str) -> Iterator[Entry]:
        unchanged = (entry for entry in self._from(prefix, start) if entry.key not in past)
        changed = sorted((entry for entry in past.values() if entry and entry.key >= start), key=_key)
        return heapq.merge(unchanged, changed, key=_key)

    def _count_from(self, prefix: str, key: str, past: Mapping[str, Entry | None]) -> int:
        count: int = self._entries.bisect_left(_behind(prefix)) - self._entries.bisect_left(key)
        gone = sum(
            (was is not None) - (other in self._entries) for other, was in past.items() if other >= key
        )
        return count + gone

    def _all_subscriptions(self) -> list[Subscription]:
        return [one for audience in self._audiences.values() for one in audience]

    def _drop(self, prefix: str, subscription: Subscription, only: Only | None) -> None:
        self._sent_to_ended += subscription.sent
        self._watchers -= 1
        audience = self._audiences[prefix]
        audience.drop(subscription, only)
        if not audience:
            del self._audiences[prefix]


def _behind(prefix: str) -> str:
    """The first key in order behind all keys that begin with `prefix`."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _key(entry: Entry) -> str:
    return entry.key
