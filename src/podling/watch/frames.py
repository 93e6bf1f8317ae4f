"""How events look on the wire. Each is made once and shared by all watchers that use the same `Frames`."""

from __future__ import annotations

import json
from typing import Protocol

from podling.watch.change import Sight

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
