"""The fields that an applied configuration names, and its validation.

Unlike other bodies, a configuration with an unknown field is refused whatever `fieldValidation` says: nobody
could manage that field. Errors show plain data as Go does: the type of a value (`%T`), and its syntax
(`%#v`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from podling.apiserver.apply.managed_fields import SELF, Fields, shown
from podling.apiserver.apply.schema import (
    ANY_SCALAR,
    SCALARS,
    Keyed,
    KeyMissing,
    Map,
    Node,
    Set,
    Struct,
    Value,
    item_element,
    set_element,
    struct_of,
)
from podling.model.codec.fields import Shape
from podling.model.codec.quoting import go_type
from podling.model.errors import bad_request
from podling.process.waits import paced

T = TypeVar("T", dict[str, Any], list[Any])

Path = tuple["Path", str] | None
"""What is above, and the element of a value; None at the top. Not a tuple of all elements: each of a million
values may be hundreds deep."""
Part = tuple[Shape, Any, Path]
MOST_TOLD = 256
"""Faults; so many are of a body by chance or on purpose."""

SCALAR_TYPES = {
    "string": ("string",),
    "boolean": ("bool",),
    "numeric": ("int64", "float64"),
    "any scalar": ("string", "bool", "int64", "float64"),
}


def go_syntax(value: Any) -> str:
    match value:
        case list():
            return f"{go_type(value)}{{{', '.join(map(go_syntax, value))}}}"
        case dict():
            members = (f"{go_syntax(name)}:{go_syntax(below)}" for name, below in sorted(value.items()))
            return f"{go_type(value)}{{{', '.join(members)}}}"
        case None:
            return "interface {}(nil)"
    return json.dumps(value, ensure_ascii=False)


def configured_fields(schema: Struct, data: dict[str, Any], failing: str) -> Fields:
    """The set of fields that `data` names. `failing`: what is said before its faults. Raises StatusError
    400."""
    walk = _Walk()
    fields = walk.fields_of(schema, data, None)
    walk.check_parts()
    if faults := walk.faults:
        listed = faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {fault}" for fault in faults)
        raise bad_request(f"{failing}: {listed}")
    if not fields.get("f:metadata", True):
        del fields["f:metadata"]
    return fields


class _Walk:
    def __init__(self) -> None:
        self.faults: list[str] = []
        self._waiting: list[Iterator[Part]] = []

    def fields_of(self, node: Node, value: Any, path: Path) -> Fields:
        """The node of a value: empty for an atomic value, null or an empty map, which are named too."""
        if value is None or isinstance(node, Value):
            return {}
        found: Fields = {}
        if isinstance(node, Struct | Map):
            for name, below in self._expected(dict, value, path).items():
                self._add_member(found, node, name, below, path)
            return found
        for index, item in enumerate(self._expected(list, value, path)):
            element = self._element(node, item, index, path)
            if element in found:
                self._fault(path, f"duplicate entries for key {shown((element,))}")
            elif element and isinstance(node, Keyed):
                if isinstance(node.of, Value):
                    self._check(node.item, item, (path, element))
                below = self.fields_of(node.of, item, (path, element))
                found[element] = {**below, SELF: {}} if below else {}
            elif element:
                found[element] = {}
        return found

    def _expected(self, kind: type[T], value: Any, path: Path) -> T:
        """`value`, or an empty one after the fault that it is of another type."""
        if isinstance(value, kind):
            return value
        name = "map" if kind is dict else "list"
        self._fault(path, f"expected {name}, got {msgspec.json.encode(value).decode()}")
        return kind()

    def _add_member(self, found: Fields, node: Struct | Map, name: str, value: Any, path: Path) -> None:
        element = f"f:{name}"
        if isinstance(node, Map):
            self._check(node.item, value, (path, element))
            found[element] = {}
        elif name in node.managed:
            part = node.managed[name][1]
            if isinstance(part, Value):
                self._check(node.shapes[name], value, (path, element))
            fields = self.fields_of(part, value, (path, element))
            if fields or value in (None, {}) or isinstance(part, Value):
                found[element] = fields
        elif name in node.unmanaged:
            self._check(node.shapes.get(name, ANY_SCALAR), value, (path, element))
        elif node.managed:
            self._fault((path, element), "field not declared in schema")

    def _check(self, shape: Shape, value: Any, path: Path) -> None:
        """What is one value to its managers. If it has parts it waits: they may be as deep as the body."""
        if value is None or shape.choices:
            return
        if shape.struct or shape.item:
            self._waiting.append(iter([(shape, value, path)]))
        else:
            self._check_scalar(SCALARS.get(shape.type, ""), value, path)

    def check_parts(self) -> None:
        while self._waiting:
            part = next(self._waiting[-1], None)
            if part is None:
                self._waiting.pop()
                continue
            shape, value, path = part
            if value is None or shape.choices or not (shape.struct or shape.item):
                self._check(shape, value, path)
            elif shape.struct:
                self.fields_of(struct_of(shape.struct), value, path)
            elif shape.item:
                self._waiting.append(self.items_of(shape, shape.item, value, path))

    def items_of(self, shape: Shape, item: Shape, value: Any, path: Path) -> Iterator[Part]:
        """Those of a map or list, one by one: there may be as many as the body has room for."""
        if shape.holds is dict:
            for name, below in self._expected(dict, value, path).items():
                yield item, below, (path, f"f:{name}")
        else:
            for index, below in enumerate(paced(self._expected(list, value, path))):
                yield item, below, (path, f"i:{index}")

    def _check_scalar(self, scalar: str, value: Any, path: Path) -> None:
        if value is None or not scalar or go_type(value) in SCALAR_TYPES[scalar]:
            return
        if scalar == "numeric":
            self._fault(path, f"expected numeric (int or float), got {go_type(value)}")
        else:
            self._fault(path, f"expected {scalar}, got &value.valueUnstructured{{Value:{go_syntax(value)}}}")

    def _element(self, node: Keyed | Set, item: Any, index: int, path: Path) -> str:
        """The path element of an item; empty if it has no keys."""
        if isinstance(node, Set):
            if not isinstance(item, dict | list | None):
                return set_element(item)
            self._fault(
                path, f"element {index}: associative list without keys has an element that's no scalar"
            )
            return ""
        if not isinstance(item, dict):
            kind = "a null element" if item is None else "non-map elements"
            self._fault(path, f"element {index}: associative list with keys may not have {kind}")
            return ""
        try:
            return item_element(node, item)
        except KeyMissing as missing:
            self._fault(path, f"element {index}: {missing}")
            return ""

    def _fault(self, path: Path, why: str) -> None:
        if len(self.faults) == MOST_TOLD:
            return
        elements = []
        while path is not None:
            path, element = path
            elements.append(element)
        self.faults.append(f"{shown(tuple(reversed(elements)))}: {why}")
