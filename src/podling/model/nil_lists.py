"""The empty lists that Go writes as `null`: those of stored objects, in fields that are always written.

Kubernetes keeps objects in a form that knows no empty list: what was `[]` when it was sent is nothing when it
is read. What is not stored, such as a review, keeps its `[]`. Replacing bytes does: the names are no keys of
maps, and within a string the quotes would be escaped.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from podling.model.fields import fields_of, is_struct

OMITTED = (msgspec.NODEFAULT, list)


def with_nulls(data: bytes, type_: type[msgspec.Struct]) -> bytes:
    """`data`, an object of `type_` as podling encodes it, as Go would write it."""
    for empty, null in _spellings(type_):
        data = data.replace(empty, null)
    return data


def without_nulls(data: bytes, type_: type[msgspec.Struct]) -> bytes:
    """The other way round."""
    for empty, null in _spellings(type_):
        data = data.replace(null, empty)
    return data


@functools.cache
def _spellings(type_: type[msgspec.Struct]) -> tuple[tuple[bytes, bytes], ...]:
    names = sorted(set(_always_written(type_, set())))
    return tuple((f'"{name}":[]'.encode(), f'"{name}":null'.encode()) for name in names)


def _always_written(type_: type[msgspec.Struct], seen: set[Any]) -> Iterator[str]:
    """The names of such lists anywhere in an object."""
    if type_ in seen:
        return
    seen.add(type_)
    factories = {field.name: field.default_factory for field in msgspec.structs.fields(type_)}
    for field in fields_of(type_).values():
        # A default that is `list` itself is left out when it is empty.
        if typing.get_origin(field.type) is list and factories[field.attribute] not in OMITTED:
            yield field.wire
        for part in (field.type, *typing.get_args(field.type)):
            if is_struct(part):
                yield from _always_written(part, seen)
