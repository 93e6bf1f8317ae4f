"""Changes of an object, the events that a selector makes of them, and the frames of a watch stream.

A frame is one line of the response. It is made once and shared by all watchers with the same `Frames`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from podling.watch.entry import Entry

Match = Callable[[Entry], bool]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Change(NamedTuple):
    """An object before and after a write. `old` is None for a creation, `new` for a deletion; never both."""

    revision: int
    key: str
    old: Entry | None
    new: Entry | None


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


_HEADS = {
    "ADDED": b'{"type":"ADDED","object":',
    "MODIFIED": b'{"type":"MODIFIED","object":',
    "DELETED": b'{"type":"DELETED","object":',
}


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
