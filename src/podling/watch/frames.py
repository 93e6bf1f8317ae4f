"""How events look on the wire. Each is made once and shared by all watchers that use the same `Frames`.

What happened to one object, and what a watcher with a selector is told of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from podling.watch.entry import Entry

Match = Callable[[Entry], bool]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Change(NamedTuple):
    """The object before and after; None where there was none. Never both."""

    revision: int
    key: str
    old: Entry | None
    new: Entry | None


class Sight(NamedTuple):
    """An event as a watcher sees it: an object that leaves its sight is shown as it was, at that revision."""

    type: EventType
    entry: Entry
    revision: int


def sight(change: Change, match: Match | None) -> Sight | None:
    """An object that starts to match is ADDED, one that ceases to is DELETED, whatever was done to it."""
    old, new = change.old, change.new
    if match:
        old = old if old and match(old) else None
        new = new if new and match(new) else None
    if new:
        return Sight("MODIFIED" if old else "ADDED", new, change.revision)
    return Sight("DELETED", old, change.revision) if old else None


_HEADS = {
    "ADDED": b'{"type":"ADDED","object":',
    "MODIFIED": b'{"type":"MODIFIED","object":',
    "DELETED": b'{"type":"DELETED","object":',
}


class Frames(Protocol):
    """Makes frames, each ending with a newline: one for each representation (whole, Table, metadata only)."""

    def event(self, sight: Sight, /) -> bytes: ...

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes: ...


class JsonFrames:
    """`{"type":...,"object":...}` with the whole object, by joining the bytes that are there."""

    def __init__(self, kind: str, api_version: str) -> None:
        object_head = f'{{"kind":{json.dumps(kind)},"apiVersion":{json.dumps(api_version)},"metadata":'
        self._bookmark = f'{{"type":"BOOKMARK","object":{object_head}'.encode()

    def event(self, sight: Sight) -> bytes:
        return _HEADS[sight.type] + sight.entry.at(sight.revision) + b"}\n"

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        annotations = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else b""
        metadata = b'{"resourceVersion":"%d"%b}' % (revision, annotations)
        return self._bookmark + metadata + b"}}\n"


class SharedFrames:
    """The frames of one round of changes: each is made once, however many watchers it goes to."""

    def __init__(self) -> None:
        self._made: dict[tuple[Frames, str, int], bytes] = {}

    def event(self, frames: Frames, sight: Sight) -> bytes:
        key = (frames, sight.type, sight.revision)
        frame = self._made.get(key)
        if frame is None:
            frame = self._made[key] = frames.event(sight)
        return frame
