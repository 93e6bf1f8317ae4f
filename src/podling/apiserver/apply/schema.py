"""The shape of an API type as server-side apply sees it, and the fields in which two objects of a type
differ.

The shape is derived once from the type and its merge metadata. A struct has named members and a map any; a
keyed list has items told apart by their keys, and a set items that are their own key. Everything else, and
what is declared atomic, is one value. `changes` runs at every write, so it skips what is equal. Data are
plain JSON, which has only the fields that are set.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podling.apiserver.apply.managed_fields import SELF, Changes, Fields
from podling.model.codec import json
from podling.model.codec.fields import FieldInfo, Shape, fields_of
from podling.model.quantity import Quantity
from podling.model.time import LAYOUTS
from podling.model.types.meta import KubeObject, ObjectMeta

KEY_DEFAULTS: Mapping[str, Any] = {
    "ContainerPort.protocol": "TCP",
    "ServicePort.protocol": "TCP",
    "LocalObjectReference.name": "",
}
"""What a key is that an item leaves out, besides the keys that Go always writes."""

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
"""Metadata that identifies the object or that only the server sets; nobody manages it."""
SCALARS: Mapping[Any, str] = {
    **dict.fromkeys((str, bytes), "string"),
    **dict.fromkeys((int, float), "numeric"),
    bool: "boolean",
    **dict.fromkeys((Quantity, int | str), "any scalar"),
}
ANY_SCALAR = Shape(int | str)
_WRITTEN_WHEN_EMPTY = frozenset({("PodSpec", "containers")})


class Value(msgspec.Struct, frozen=True):
    """An atomic value: a scalar, or something that is replaced as a whole."""


class Map(msgspec.Struct, frozen=True):
    """A map: any names, each with a value. `item`: the shape of the values."""

    item: Shape


class Keyed(msgspec.Struct, frozen=True):
    """A list of structs with keys. `keys`: each with its default, None for a key without, which the path then
    leaves out. `item`: the shape of the items. `always`: Go writes the list even if empty, so it is present
    in an empty object."""

    keys: Mapping[str, Any]
    of: Node
    item: Shape
    always: bool = False


class Set(msgspec.Struct, frozen=True):
    """A list of scalars, each at most once."""


class Struct(msgspec.Struct, frozen=True):
    """`managed` has the path element and the node of each member; `unmanaged` members belong to nobody.
    `shapes`: of the members, what each has to be that is one value."""

    managed: Mapping[str, tuple[str, Node]]
    unmanaged: frozenset[str] = frozenset()
    shapes: Mapping[str, Shape] = msgspec.field(default_factory=dict)


Node = Value | Map | Keyed | Set | Struct

VALUE, SET = Value(), Set()


class KeyMissing(ValueError):
    """An item of a list with keys leaves out a key that has no default, so it has no path."""


@functools.cache
def schema_of(type_: type[KubeObject]) -> Struct:
    """The shape of a whole object."""
    metadata = "f:metadata", _without(struct_of(ObjectMeta), OF_THE_SERVER)
    whole = _without(struct_of(type_), IDENTITY)
    return Struct({**whole.managed, "metadata": metadata}, whole.unmanaged, whole.shapes)


def _without(struct: Struct, names: frozenset[str]) -> Struct:
    kept = {name: member for name, member in struct.managed.items() if name not in names}
    return Struct(kept, names, struct.shapes)


@functools.cache
def struct_of(type_: type[msgspec.Struct]) -> Struct:
    """The shape of a part."""
    fields = fields_of(type_)
    members = {name: (f"f:{name}", _member(type_, info)) for name, info in fields.items()}
    shapes = {name: fields[name].shape for name, (_, node) in members.items() if node is VALUE}
    for name, shape in shapes.items():
        # That a time is text is found only when it is read.
        shapes[name] = ANY_SCALAR if fields[name].format in LAYOUTS and shape.item is None else shape
    return Struct(members, shapes=shapes)


def _member(owner: type[msgspec.Struct], info: FieldInfo) -> Node:
    shape, merge = info.shape, info.merge
    if merge.map_type == "atomic":
        return VALUE
    if shape.item is None:
        # The field has the last word: it may be granular where others of its type are atomic.
        is_atomic = getattr(shape.struct, "ATOMIC", False) and merge.map_type != "granular"
        # A type that is a part of itself is one value all the way up.
        is_atomic = is_atomic or shape.struct is owner
        return struct_of(shape.struct) if shape.struct and not is_atomic else VALUE
    if shape.holds is dict:
        return Map(ANY_SCALAR if info.format in LAYOUTS else shape.item)
    if merge.list_type == "set":
        return SET
    if merge.list_type == "map":
        type_ = shape.item.type
        of = VALUE if getattr(type_, "ATOMIC", False) else struct_of(type_)
        keys = {key: _key_default(type_, fields_of(type_)[key]) for key in sorted(merge.list_map_keys)}
        return Keyed(keys, of, shape.item, always=(owner.__name__, info.wire) in _WRITTEN_WHEN_EMPTY)
    return VALUE


def _key_default(owner: type[msgspec.Struct], key: FieldInfo) -> Any:
    return KEY_DEFAULTS.get(f"{owner.__name__}.{key.wire}", key.type() if key.always else None)


def item_element(node: Keyed, item: Mapping[str, Any]) -> str:
    """The path element of a list item: of the keys that it has, null or not. Raises KeyMissing if it has
    none."""
    keys = {
        key: item.get(key, default)
        for key, default in node.keys.items()
        if default is not None or key in item
    }
    if not keys:
        named = msgspec.json.encode(list(node.keys)).decode()
        raise KeyMissing(
            f"associative list with keys has an element that omits all key fields {named} "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{msgspec.json.encode(keys).decode()}"


def set_element(value: Any) -> str:
    return f"v:{msgspec.json.encode(value).decode()}"


def changes(type_: type[KubeObject], old: Any, new: Any) -> Changes:
    """The fields that differ from `old` to `new`, the data of two objects of `type_`."""
    found = Changes({}, {})
    _compare(schema_of(type_), old, new, found)
    return found


def changes_of_new(type_: type[KubeObject], new: Any) -> Changes:
    """The fields of a new object: what it has beyond an empty one."""
    return changes(type_, _empty(type_), new)


@functools.cache
def _empty(type_: type[KubeObject]) -> Any:
    return json.to_data(type_())


def parts(node: Node, value: Any) -> Iterator[tuple[str, Node, Any]]:
    """Path element, shape and value of each part of a value that has parts; null has none. Raises
    KeyMissing."""
    if value is None:
        return
    if isinstance(node, Struct):
        managed = node.managed
        for name in value:
            if name in managed:
                yield *managed[name], value[name]
    elif isinstance(node, Keyed):
        items: dict[str, list[Any]] = {}
        for item in value:
            items.setdefault(item_element(node, item), []).append(item)
        for element, same in items.items():
            # Several items of the same keys are one value.
            yield (element, node.of, same[0]) if len(same) == 1 else (element, VALUE, same)
    elif isinstance(node, Map):
        for name in value:
            yield f"f:{name}", VALUE, value[name]
    elif isinstance(node, Set):
        for item in value:
            yield set_element(item), VALUE, item


def owned(node: Node, value: Any) -> Fields:
    """All there is of a value that was not there, itself included."""
    found: Fields = {}
    if isinstance(node, Struct):
        # As `parts` has them, for what is asked of every part of every new object.
        managed = node.managed
        for name, below in (value or {}).items():
            if (known := managed.get(name)) is not None:
                element, part = known
                found[element] = {} if part is VALUE else owned(part, below)
    elif node is not VALUE:
        for element, part, below in parts(node, value):
            found[element] = {} if part is VALUE else owned(part, below)
    if found:
        found[SELF] = {}
    return found


def _compare(node: Node, old: Any, new: Any, found: Changes) -> None:
    if isinstance(node, Struct):
        _compare_members(node, old or {}, new or {}, found)
        return
    before = {element: (part, value) for element, part, value in parts(node, old)}
    for element, part, value in parts(node, new):
        stood, was = before.get(element, (None, None))
        if stood is part:
            del before[element]
            if was != value:
                _note(element, part, was, value, found)
        else:
            _take(element, part, value, found)
    found.removed.update({element: owned(part, value) for element, (part, value) in before.items()})


def _compare_members(node: Struct, old: Any, new: Any, found: Changes) -> None:
    """Skips equal members first: most are, and need no path element."""
    for name, value in new.items():
        if name not in old:
            if name in node.managed:
                _take(*node.managed[name], value, found)
        elif old[name] != value and name in node.managed:
            _note(*node.managed[name], old[name], value, found)
    for name, value in old.items():
        if name not in new and name in node.managed:
            element, part = node.managed[name]
            found.removed[element] = owned(part, value)


def _take(element: str, part: Node, value: Any, found: Changes) -> None:
    """A part that was not there before."""
    if part is VALUE:
        found.taken[element] = {}
    elif isinstance(part, Keyed) and part.always:
        _note(element, part, [], value, found)
    else:
        found.taken[element] = owned(part, value)


def _note(element: str, part: Node, was: Any, value: Any, found: Changes) -> None:
    """A part that is there before and after, and not the same."""
    if part is VALUE or not (was or value):
        found.taken[element] = {}
        return
    below = Changes({}, {})
    _compare(part, was, value, below)
    if below.taken:
        found.taken[element] = below.taken
    if below.removed:
        found.removed[element] = below.removed
