"""The shape of an API type as server-side apply sees it: what is one value, and what has parts of its own.

Read once from the type and its merge metadata. A struct has named members, a map any; a keyed list has items
that are told apart by their keys, a set items that are their own key. All else, and all that is declared
atomic, is one value. What is walked by it is plain JSON data, which holds only the fields that are there.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from typing import Any

import msgspec

from podling.model.fields import FieldInfo, fields_of, is_struct, item_type
from podling.model.meta import KubeObject, ObjectMeta


class Value(msgspec.Struct, frozen=True):
    """One value: a scalar, or something that is replaced whole."""


class Map(msgspec.Struct, frozen=True):
    """Any names, each with one value; `scalar` is what it must be, if anything."""

    scalar: str = ""


class Keyed(msgspec.Struct, frozen=True):
    """A list of structs. `always`: Go writes it even when it is empty, so an empty object has it."""

    keys: tuple[str, ...]
    of: Struct
    always: bool = False


class Set(msgspec.Struct, frozen=True):
    """A list of scalars, each at most once."""


class Struct(msgspec.Struct, frozen=True):
    """`managed` has the path element and the shape of each member; `unmanaged` members belong to nobody.
    `scalars` says which members must be a string, a number or a boolean."""

    managed: Mapping[str, tuple[str, Node]]
    unmanaged: frozenset[str] = frozenset()
    scalars: Mapping[str, str] = msgspec.field(default_factory=dict)


Node = Value | Map | Keyed | Set | Struct

VALUE, SET = Value(), Set()

KEY_DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}
"""What a key is that an item leaves out; other keys it may not."""

IDENTITY = frozenset({"kind", "apiVersion"})
OF_THE_SERVER = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""Metadata that is identity, or the server's alone."""
SCALARS: Mapping[Any, str] = {str: "string", int: "numeric", bool: "boolean"}
_WRITTEN_WHEN_EMPTY = frozenset({("PodSpec", "containers")})


@functools.cache
def schema_of(type_: type[KubeObject]) -> Struct:
    """Of a whole object."""
    metadata = "f:metadata", _without(_struct(ObjectMeta), OF_THE_SERVER)
    whole = _without(_struct(type_), IDENTITY)
    return Struct({**whole.managed, "metadata": metadata}, whole.unmanaged, whole.scalars)


def _without(struct: Struct, names: frozenset[str]) -> Struct:
    kept = {name: member for name, member in struct.managed.items() if name not in names}
    return Struct(kept, names, struct.scalars)


@functools.cache
def _struct(type_: type[msgspec.Struct]) -> Struct:
    fields = fields_of(type_)
    scalars = {name: SCALARS[info.type] for name, info in fields.items() if info.type in SCALARS}
    members = {name: (f"f:{name}", _member(type_, info)) for name, info in fields.items()}
    return Struct(members, scalars=scalars)


def _member(owner: type[msgspec.Struct], info: FieldInfo) -> Node:
    origin, merge = typing.get_origin(info.type), info.merge
    if merge.map_type == "atomic":
        return VALUE
    if origin is dict:
        return Map(SCALARS.get(item_type(info.type), ""))
    if origin is not list:
        return _struct(info.type) if _has_parts(info.type) else VALUE
    match merge.list_type:
        case "set":
            return SET
        case "map":
            always = (owner.__name__, info.wire) in _WRITTEN_WHEN_EMPTY
            return Keyed(tuple(sorted(merge.list_map_keys)), _struct(item_type(info.type)), always)
        case _:
            return VALUE


def _has_parts(type_: Any) -> bool:
    return is_struct(type_) and not getattr(type_, "ATOMIC", False)


def item_element(node: Keyed, item: Mapping[str, Any]) -> str:
    """The path element of a list item. An empty key is not written, and is empty."""
    keys = {key: item.get(key, KEY_DEFAULTS.get(key, "")) for key in node.keys}
    return f"k:{msgspec.json.encode(keys).decode()}"


def set_element(value: Any) -> str:
    return f"v:{msgspec.json.encode(value).decode()}"
