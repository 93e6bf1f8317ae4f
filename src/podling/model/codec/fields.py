"""The base classes of the API types, and the metadata of their fields.

`Part` and `Object` give every type its wire form. Attributes are snake_case; the wire name is Kubernetes'
camelCase with its acronyms (`pod_ip` is `podIP`). A field left at its default is not written (Go's
`omitempty`); `always(...)` marks the fields that Go writes even when they are zero, `null()` the times that
Go writes as null.

`Annotated` metadata of a field says how it is merged (`Annotated[list[Container], by("name")]`: patch
strategy, merge key, list type) and which OpenAPI format it has. `fields_of` reads it back for strategic merge
patch, server-side apply and the published OpenAPI. This module imports no API type, so that all of them can
import it.
"""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

T = TypeVar("T")

ACRONYMS = frozenset(
    [
        "api",
        "cidr",
        "cidrs",
        "fqdn",
        "id",
        "ids",
        "io",
        "ip",
        "ipc",
        "ips",
        "pid",
        "uri",
        "url",
        "urls",
        "uuid",
        "wwns",
    ]
)
"""Words that Kubernetes writes in capitals unless they begin the name. A plural s stays small (`hostIPs`)."""


def wire_name(attribute: str) -> str:
    """`host_ips` → `hostIPs`; a trailing underscore only avoids a Python keyword (`from_` → `from`)."""
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(_capitalized(word) for word in rest)


def _capitalized(word: str) -> str:
    if word not in ACRONYMS:
        return word[:1].upper() + word[1:]
    return word[:-1].upper() + "s" if word.endswith("s") else word.upper()


def always(zero: Callable[[], T]) -> T:
    """A field that is written even when it is zero or empty: `ready: bool = always(bool)`. `zero` makes the
    default."""
    # A list made by `list` itself msgspec knows to be empty by default, and leaves out.
    made: T = msgspec.field(default_factory=_empty_list if zero is list else zero)
    return made


def _empty_list() -> Any:
    return []


def null() -> str | None:
    """A time that is written as `null` until it is set, as Go writes it: `time: Time | None = null()`."""
    made: str | None = msgspec.field(default_factory=NoneType)
    return made


class Part(msgspec.Struct, rename=wire_name, omit_defaults=True):
    """A struct inside an API object."""

    ATOMIC: ClassVar[bool] = False
    """Whether server-side apply replaces it whole (`x-kubernetes-map-type: atomic`)."""


class Object(Part):
    """A top-level API type. `kind` and `apiVersion` are filled in, so an encoded object begins with them."""

    KIND: ClassVar[str] = ""
    API_VERSION: ClassVar[str] = ""

    kind: str = ""
    api_version: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            self.kind = self.KIND
        if not self.api_version:
            self.api_version = self.API_VERSION


class Merge(msgspec.Struct, frozen=True):
    """Field metadata: how patch and apply merge the field.

    `strategies` are the words of `x-kubernetes-patch-strategy`, `key` is `x-kubernetes-patch-merge-key`;
    strategic merge patch uses both. `list_type` (`map`, `set`, `atomic`), `list_map_keys` and `map_type` are
    `x-kubernetes-list-type`, `-list-map-keys` and `-map-type`; server-side apply uses them.
    """

    strategies: tuple[str, ...] = ()
    key: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""


def by(key: str, *, keys: tuple[str, ...] = (), retain_keys: bool = False) -> Merge:
    """A list merged by item: by `key` in strategic merge, by `keys` (default: it) in server-side apply."""
    strategies = ("merge", "retainKeys") if retain_keys else ("merge",)
    return Merge(strategies, key, "map", keys or (key,))


def patched_by(key: str, list_type: str = "atomic") -> Merge:
    """A list that strategic merge patches by `key` although server-side apply does not treat it as a map."""
    return Merge(("merge",), key, list_type)


def keyed(*keys: str) -> Merge:
    """A list that is a map to server-side apply and is replaced whole by strategic merge patch."""
    return Merge((), "", "map", keys)


RETAIN_KEYS = Merge(("retainKeys",))
"""A union: a patch that names another member clears the members it does not name."""
MERGED_SET = Merge(("merge",), "", "set")
"""Primitives, merged as a set."""
SET = Merge((), "", "set")
ATOMIC_MAP = Merge(map_type="atomic")
"""A map or struct replaced whole by server-side apply."""
UNDECLARED = Merge()


class Format(msgspec.Struct, frozen=True):
    """Field metadata: the OpenAPI format."""

    name: str


INTEGER_BITS = {"int32": 32, "int64": 64}
Int32 = Annotated[int, Format("int32"), msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Format("int64"), msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
IntOrString = Int32 | str
"""A port's number or name. In `FieldInfo.type` it equals `int | str`."""
_NOT_EMPTY = msgspec.Meta(min_length=1)
# Go refuses `""` for a time. So does podling, which holds what podling itself sends to it.
Time = Annotated[str, Format("date-time"), _NOT_EMPTY]
"""RFC 3339, whole seconds, UTC. Unset it is left out (`Time = ""`) or null (`Time | None = null()`)."""
MicroTime = Annotated[str, Format("micro-time"), _NOT_EMPTY]
"""RFC 3339 with microseconds; OpenAPI calls it date-time too."""


class FieldInfo(msgspec.Struct, frozen=True):
    """One field of an API type: attribute, wire name, type, merging, OpenAPI format (of its items)."""

    attribute: str
    wire: str
    type: Any
    merge: Merge
    format: str


def _said_of(annotation: Any) -> Iterator[Any]:
    """All `Annotated` metadata of a type: that of the field first, then that of the types inside it."""
    yield from getattr(annotation, "__metadata__", ())
    for argument in typing.get_args(annotation):
        if isinstance(argument, type) or hasattr(argument, "__args__"):
            yield from _said_of(argument)


def _without_none(type_: Any) -> Any:
    if typing.get_origin(type_) not in (types.UnionType, typing.Union):
        return type_
    members = [member for member in typing.get_args(type_) if member is not type(None)]
    return functools.reduce(operator.or_, members)


def _field(attribute: str, wire: str, type_: Any, annotation: Any) -> FieldInfo:
    said = list(_said_of(annotation))
    merge = next((m for m in said if isinstance(m, Merge)), UNDECLARED)
    form = next((m.name for m in said if isinstance(m, Format)), "")
    return FieldInfo(attribute, wire, _without_none(type_), merge, form)


@functools.cache
def fields_of(owner: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """The fields of an API type by wire name, in wire order."""
    types = typing.get_type_hints(owner)
    annotations = typing.get_type_hints(owner, include_extras=True)
    return {
        wire: _field(name, wire, types[name], annotations[name])
        for name, wire in zip(owner.__struct_fields__, owner.__struct_encode_fields__, strict=True)
    }


def item_type(annotation: Any) -> Any:
    """The type of the items of a list or of the values of a map: `Container` of `list[Container]`."""
    return _without_none(typing.get_args(annotation)[-1])


def may_hold_null(annotation: Any) -> bool:
    """Whether null is kept in a map: `dict[str, Time | None]`, as Go's zero time is written."""
    return type(None) in typing.get_args(typing.get_args(annotation)[-1])


def is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
