"""Answers as meta/v1 PartialObjectMetadata: the metadata of each object and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from podling.model.codec import json
from podling.model.types.meta import KubeObject, ListMeta
from podling.watch.entry import Entry
from podling.watch.frames import SelectedEvent

_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
_LIST_HEAD = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":'


def metadata_of(obj: KubeObject) -> bytes:
    return _HEAD + json.encode(obj.metadata) + b"}"


def partial_metadata(entry: Entry, revision: int) -> bytes:
    """`revision`: that of the event. For a deletion it differs from the object's own."""
    metadata = json.encode(entry.object.metadata)
    if revision != entry.revision:
        own, shown = b'"resourceVersion":"%d"' % entry.revision, b'"resourceVersion":"%d"' % revision
        metadata = metadata.replace(own, shown, 1)
    return _HEAD + metadata + b"}"


def partial_metadata_list(entries: Sequence[Entry], metadata: ListMeta) -> bytes:
    items = b",".join([partial_metadata(entry, entry.revision) for entry in entries])
    return _LIST_HEAD + json.encode(metadata) + b',"items":[' + items + b"]}"


class MetadataFrames:
    """The events of a watch, with metadata only."""

    def event(self, event: SelectedEvent) -> bytes:
        shown = partial_metadata(event.entry, event.revision)
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), shown)

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        annotations = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else b""
        metadata = b'{"resourceVersion":"%d"%b}' % (revision, annotations)
        return b'{"type":"BOOKMARK","object":%b%b}}\n' % (_HEAD, metadata)
