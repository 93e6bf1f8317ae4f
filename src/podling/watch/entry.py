"""An object in the watch cache (`Entry`), a change of it (`Change`), and the frames of a watch's response.

An entry holds the stored bytes, which are the storage's own object, so a cache costs only the memory of its
index. They have no resourceVersion. It is inserted after the `"metadata":{` that every stored object has, by
copying bytes (a fifth of a microsecond) and not by decoding.

A frame is one line of a watch's response. It is made once and shared by all watchers with the same `Frames`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Protocol

RECENT = 1_000
"""How many decoded objects of a resource are kept. All would take much memory; to decode one again takes
microseconds."""
RECENT_BYTES = 8 << 20
"""Encoded bytes of those objects; decoded they take several times as much."""

_METADATA = b'"metadata":{'
_EMPTY = ord("}")
_HEADS = {
    "ADDED": b'{"type":"ADDED","object":',
    "MODIFIED": b'{"type":"MODIFIED","object":',
    "DELETED": b'{"type":"DELETED","object":',
}

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


def splice(value: bytes, revision: int) -> bytes:
    """Stored bytes with `revision` inserted as resourceVersion."""
    return _spliced(value, _seam(value), revision)


class Entry:
    """An object at one revision; never changes. `value` is as stored, `object` must not be modified."""

    __slots__ = ("_decoder", "_object", "_seam", "key", "revision", "value")

    def __init__(self, key: str, revision: int, value: bytes, decoder: Decoder) -> None:
        self.key = key
        self.revision = revision
        self.value = value
        self._seam = _seam(value)
        self._decoder = decoder
        self._object: Any | None = None

    @property
    def data(self) -> bytes:
        """The object's JSON as a GET answers it, with its resourceVersion; revision 0 is none."""
        return _spliced(self.value, self._seam, self.revision) if self.revision else self.value

    @property
    def origin(self) -> Entry:
        """The entry as it is stored, which may be in another version."""
        return self

    def item(self) -> tuple[bytes, memoryview]:
        """The object's JSON as an item of a list, without kind and apiVersion: two pieces, to be joined."""
        value, seam = self.value, self._seam
        comma = b"" if value[seam] == _EMPTY else b","
        return b'{"metadata":{"resourceVersion":"%d"%b' % (self.revision, comma), memoryview(value)[seam:]

    @property
    def object(self) -> Any:
        # Looked at once: the loop may have it forgotten while a thread asks.
        obj = self._object
        if obj is None:
            obj = self._object = self._decoder.decode(self)
        return obj

    def at(self, revision: int) -> bytes:
        """The object's JSON with another resourceVersion: that of its deletion."""
        return _spliced(self.value, self._seam, revision)

    def know_object(self, obj: Any) -> None:
        """Spares decoding: `obj` is what `data` was encoded from, and nobody will modify it."""
        if self._object is None:
            self._decoder.keep(self)
            self._object = obj

    def forget_object(self) -> None:
        self._object = None


def items(entries: Iterable[Entry]) -> list[bytes | memoryview]:
    """The pieces between the brackets of a list's `"items":[]`.

    The caller joins all pieces of a list at once: copying each object on the way would cost several times as
    much.
    """
    pieces: list[bytes | memoryview] = []
    for entry in entries:
        pieces += entry.item()
        pieces.append(b",")
    return pieces[:-1]


def _seam(value: bytes) -> int:
    return value.index(_METADATA) + len(_METADATA)


def _spliced(value: bytes, seam: int, revision: int) -> bytes:
    comma = b"" if value[seam] == _EMPTY else b","
    return value[:seam] + b'"resourceVersion":"%d"%b' % (revision, comma) + value[seam:]


class Decoder:
    """Decodes entries, and drops the decoded objects of the entries that were decoded longest ago."""

    def __init__(
        self, decode: Callable[[bytes], Any], keep: int = RECENT, most_bytes: int = RECENT_BYTES
    ) -> None:
        self._decode = decode
        self._keep = keep
        self._most_bytes = most_bytes
        self._bytes = 0
        self._recent: deque[Entry] = deque()

    def decode(self, entry: Entry) -> Any:
        self.keep(entry)
        return self._decode(entry.data)

    def keep(self, entry: Entry) -> None:
        self._recent.append(entry)
        self._bytes += len(entry.value)
        while len(self._recent) > self._keep or self._bytes > self._most_bytes:
            oldest = self._recent.popleft()
            self._bytes -= len(oldest.value)
            oldest.forget_object()


Match = Callable[[Entry], bool]


class Change(NamedTuple):
    """An object before and after a write. `old` is None for a creation, `new` for a deletion; never both."""

    revision: int
    key: str
    old: Entry | None
    new: Entry | None

    @property
    def size(self) -> int:
        """Bytes of the object that the change keeps: `old` is the `new` of a change before."""
        kept = self.new or self.old
        return len(kept.value) if kept else 0


class SelectedEvent(NamedTuple):
    """A watch event after the watcher's selector. A DELETED event has the last state that the selector
    matched, at the revision of the change."""

    type: EventType
    entry: Entry
    revision: int


def select(change: Change, match: Match | None) -> SelectedEvent | None:
    """The event of `change` for a watcher that selects `match`; None for no event. An object that starts to
    match is ADDED and one that ceases to match is DELETED, whatever the write was."""
    old, new = change.old, change.new
    if match:
        old = old if old and match(old) else None
        new = new if new and match(new) else None
    if new:
        return SelectedEvent("MODIFIED" if old else "ADDED", new, change.revision)
    return SelectedEvent("DELETED", old, change.revision) if old else None


class Frames(Protocol):
    """Makes frames, each ending with a newline. There is one for each representation: whole object, Table,
    metadata only."""

    def event(self, event: SelectedEvent, /) -> bytes: ...

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes: ...


class JsonFrames:
    """`{"type":...,"object":...}` with the whole object, made by joining bytes without encoding."""

    def __init__(self, kind: str, api_version: str) -> None:
        object_head = f'{{"kind":{json.dumps(kind)},"apiVersion":{json.dumps(api_version)},"metadata":'
        self._bookmark = f'{{"type":"BOOKMARK","object":{object_head}'.encode()

    def event(self, event: SelectedEvent) -> bytes:
        return _HEADS[event.type] + event.entry.at(event.revision) + b"}\n"

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        annotations = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else b""
        metadata = b'{"resourceVersion":"%d"%b}' % (revision, annotations)
        return self._bookmark + metadata + b"}}\n"


class SharedFrames:
    """The frames of one group of changes: each is made once, however many watchers it goes to."""

    def __init__(self) -> None:
        self._made: dict[tuple[Frames, str, int], bytes] = {}

    def event(self, frames: Frames, event: SelectedEvent) -> bytes:
        key = (frames, event.type, event.revision)
        frame = self._made.get(key)
        if frame is None:
            frame = self._made[key] = frames.event(event)
        return frame
