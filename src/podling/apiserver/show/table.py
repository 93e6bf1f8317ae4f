"""Answers as meta/v1 Table, which `kubectl get` prints, and as PartialObjectMetadata: the metadata of each
object and nothing else.

A row of a Table has the kind's cells and the object itself. The query parameter `includeObject` says how much
of the object: by default its metadata. The columns of a kind never change, so they are encoded once.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import UNPRINTED
from podling.apiserver.kinds.kind import Column, Kind, View
from podling.model.codec import json
from podling.model.codec.json import with_nulls
from podling.model.errors import bad_request
from podling.model.time import Clock
from podling.model.types.meta import KubeObject, ListMeta
from podling.watch.entry import Decoder, Entry, SelectedEvent

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
NOTHING, METADATA, OBJECT = "None", "Metadata", "Object"

BETA = "v1beta1"
"""The version of meta.k8s.io in which all of these look alike but for its name."""

_IN_V1 = re.compile(
    rb'(\{"kind":"(?:Table|PartialObjectMetadata(?:List)?)","apiVersion":"meta\.k8s\.io/)v1(?=")'
)
_ROWS = b',"rows":['
_NO_COLUMNS = b',"columnDefinitions":null' + _ROWS
_PARTIAL_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
_PARTIAL_LIST_HEAD = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":'
_HEAD = b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":'


def in_beta(shown: bytes) -> bytes:
    """The same answer, or the same frames, in version BETA."""
    return _IN_V1.sub(rb"\1" + BETA.encode(), shown)


def include_object(values: Sequence[str]) -> str:
    """The query parameter. Raises StatusError 400."""
    value = values[0] if values and values[0] else METADATA
    if value not in (NOTHING, METADATA, OBJECT):
        why = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{value}": {why}'
        )
    return value


def table_of(columns: Sequence[Column], cells: Sequence[Any], obj: KubeObject, include: str) -> bytes:
    """The table of one object that is not stored as it is."""
    head = msgspec.json.encode([column._asdict() for column in columns])
    whole = {NOTHING: b"null", METADATA: metadata_of(obj), OBJECT: json.encode(obj)}[include]
    row = b'{"cells":%b,"object":%b}' % (msgspec.json.encode(cells), whole)
    metadata = b'{"resourceVersion":"%b"}' % obj.metadata.resource_version.encode()
    return _HEAD + metadata + b',"columnDefinitions":' + head + _ROWS + row + b"]}"


class Tables:
    """Makes the tables of one kind."""

    def __init__(self, kind: Kind[Any]) -> None:
        # As in Kubernetes, a row shows the object as it is stored, whatever version is asked for.
        self._kind = kind.stored if isinstance(kind, View) else kind
        self._shown = kind.columns

    @cached_property
    def _columns(self) -> bytes:
        columns = [column._asdict() for column in self._shown]
        return b',"columnDefinitions":' + msgspec.json.encode(columns) + _ROWS

    def of_list(self, entries: Sequence[Entry], metadata: ListMeta, now: datetime, include: str) -> bytes:
        ordered = sorted(entries, key=lambda entry: self._kind.row_order(entry.origin.object))
        rows = b",".join([self._row(entry, entry.revision, now, include) for entry in ordered])
        if not rows and self._shown == UNPRINTED:
            # As Go writes rows that nobody has begun.
            return _HEAD + json.encode(metadata) + self._columns[:-1] + b"null}"
        return _HEAD + json.encode(metadata) + self._columns + rows + b"]}"

    def of_one(self, entry: Entry, revision: int, now: datetime, include: str) -> bytes:
        metadata = b'{"resourceVersion":"%d"}' % revision if revision else b"{}"
        return _HEAD + metadata + self._columns + self._row(entry, revision, now, include) + b"]}"

    def of_none(self, revision: int, now: datetime, include: str, annotations: dict[str, str]) -> bytes:
        """The Table of a bookmark: as in Kubernetes, one row for an object that has only a
        resourceVersion."""
        obj = self._kind.resource.type()
        obj.metadata.annotations = annotations
        value = with_nulls(json.encode(obj), self._kind.resource.type)
        decoder = Decoder(partial(json.decode, type_=self._kind.resource.type), keep=1)
        nothing = Entry("", revision, value, decoder)
        return self.of_one(nothing, revision, now, include)

    async def columns_once(self, batches: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The frames of a watch. Only the first one has the column definitions, as in Kubernetes."""
        async with aclosing(batches):
            async for first in batches:
                frame, end, others = first.partition(b"\n")
                yield frame + end + others.replace(self._columns, _NO_COLUMNS)
                break
            async for batch in batches:
                yield batch.replace(self._columns, _NO_COLUMNS)

    def _row(self, entry: Entry, revision: int, now: datetime, include: str) -> bytes:
        obj = entry.origin.object
        row = b'{"cells":' + msgspec.json.encode(self._kind.row(obj, now))
        if conditions := self._kind.row_conditions(obj):
            row += b',"conditions":' + msgspec.json.encode(conditions)
        match include:
            case "None":
                return row + b',"object":null}'
            case "Object":
                return b'%b,"object":%b}' % (row, entry.at(revision))
            case _:
                return b'%b,"object":%b}' % (row, partial_metadata(entry, revision))


class TableFrames:
    """The events of a watch, each with a Table of one row."""

    def __init__(self, tables: Tables, include: str, clock: Clock) -> None:
        self._tables = tables
        self._include = include
        self._clock = clock

    def event(self, event: SelectedEvent) -> bytes:
        table = self._tables.of_one(event.entry, event.revision, self._clock.now(), self._include)
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), table)

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        annotations = INITIAL_EVENTS_END if initial_events_end else {}
        table = self._tables.of_none(revision, self._clock.now(), self._include, annotations)
        return b'{"type":"BOOKMARK","object":%b}\n' % table


def metadata_of(obj: KubeObject) -> bytes:
    return _PARTIAL_HEAD + json.encode(obj.metadata) + b"}"


def partial_metadata(entry: Entry, revision: int) -> bytes:
    """`revision`: that of the event. For a deletion it differs from the object's own."""
    metadata = json.encode(entry.origin.object.metadata)
    if revision != entry.revision:
        own, shown = b'"resourceVersion":"%d"' % entry.revision, b'"resourceVersion":"%d"' % revision
        metadata = metadata.replace(own, shown, 1)
    return _PARTIAL_HEAD + metadata + b"}"


def partial_metadata_list(entries: Sequence[Entry], metadata: ListMeta) -> bytes:
    items = b",".join([partial_metadata(entry, entry.revision) for entry in entries])
    shown = b"[%b]" % items if items else b"null"
    return _PARTIAL_LIST_HEAD + json.encode(metadata) + b',"items":' + shown + b"}"


class MetadataFrames:
    """The events of a watch, with metadata only."""

    def event(self, event: SelectedEvent) -> bytes:
        shown = partial_metadata(event.entry, event.revision)
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), shown)

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        annotations = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else b""
        metadata = b'{"resourceVersion":"%d"%b}' % (revision, annotations)
        return b'{"type":"BOOKMARK","object":%b%b}}\n' % (_PARTIAL_HEAD, metadata)
