"""An object with one field changed at a time, for every field of its type, to good values and to bad ones.

What is tried follows from the type of the field, so that a new type needs no line here. A part that the
object does not have is made of the fields that Kubernetes always writes, or of its line in `SEEDS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from peer.mutations import GONE
from podling.model.codec.fields import FieldInfo, Shape, fields_of
from podling.model.enums import ENUMS
from podling.model.quantity import Quantity

STRINGS = ("", "a", "10.0.0.9", "No_Name", "/a/../b", "a.b/c", "x" * 300, 1)
TIMES = ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05+01:00", "soon", "", 1)
SCALARS: Mapping[Any, tuple[Any, ...]] = {
    bool: (True, False, "true"),
    int: (-1, 0, 1, 70_000, 1 << 31, 1.5, "1"),
    float: (-1, 0, 1.5, "1"),
    bytes: ("YQ==", "YQ", "!", "", 1),
    Quantity: ("1", "1.5", "-1", "1m", "0", "x", "", 1),
    int | str: (-1, 0, 1, 70_000, "http", "No_Name", "50%", "150%", "", 1.5),
    Any: ({}, {"a": 1}, "a", 1, [1]),
    msgspec.Raw: ({}, "a"),
}
SHALLOW = frozenset({"JSONSchemaProps", "ManagedFieldsEntry", "PodTemplateSpec"})
"""Types of which only the fields of their own are tried where they are a part of another."""
DEEPEST = 6
"""Structs within each other that are looked into for fields that they do not have."""
SEEDS: Mapping[str, Any] = {
    "Container": {"name": "d", "image": "i"},
    "EphemeralContainer": {"name": "e", "image": "i"},
    "Volume": {"name": "v"},
    "VolumeMount": {"name": "v", "mountPath": "/m"},
    "HTTPGetAction": {"path": "/", "port": 80},
    "Probe": {"tcpSocket": {"port": 80}},
}

Changed = tuple[str, Any, Any]
"""The path that was changed, its new value (GONE: it is left out), and the whole with the change."""


def variations(
    type_: type[msgspec.Struct], whole: Mapping[str, Any], *, deep: bool = True
) -> Iterator[Changed]:
    for wire, info in fields_of(type_).items():
        present = whole.get(wire)
        if present is not None:
            yield wire, GONE, {name: value for name, value in whole.items() if name != wire}
        for value in (None, *_values(info.shape, _scalars(type_, info))):
            yield wire, value, {**whole, wire: value}
        if deep and info.shape.part:
            for path, value, made in _inside(info.shape, present):
                yield f"{wire}{path}", value, {**whole, wire: made}


def with_unknown(shape: Shape, present: Any, depth: int = DEEPEST) -> Iterator[Changed]:
    """A field that its type does not have, in each struct that the value has or may have."""
    if shape.struct:
        seed = present or _seed(shape.struct)
        yield ".novel", 1, {**seed, "novel": 1}
        parts = ((wire, info.shape) for wire, info in fields_of(shape.struct).items() if info.shape.part)
        for wire, part in parts if depth else ():
            for path, value, made in with_unknown(part, seed.get(wire), depth - 1):
                yield f".{wire}{path}", value, {**seed, wire: made}
    elif shape.holds is list and shape.item:
        for path, value, made in with_unknown(shape.item, (present or [None])[0], depth):
            yield f"[0]{path}", value, [made]
    elif shape.item:
        for path, value, made in with_unknown(shape.item, None, depth):
            yield f".a{path}", value, {**(present or {}), "a": made}


def _inside(shape: Shape, present: Any) -> Iterator[Changed]:
    """What holds a struct, with each field of the struct changed."""
    if shape.struct:
        seed = present or _seed(shape.struct)
        deep = shape.struct.__name__ not in SHALLOW
        for path, value, made in variations(shape.struct, seed, deep=deep):
            yield f".{path}", value, made
        return
    assert shape.item
    if shape.holds is list:
        first, *rest = present or [None]
        for path, value, made in _inside(shape.item, first):
            yield f"[0]{path}", value, [made, *rest]
    else:
        for path, value, made in _inside(shape.item, None):
            yield f".a{path}", value, {**(present or {}), "a": made}


def _seed(type_: type[msgspec.Struct]) -> Mapping[str, Any]:
    if seed := SEEDS.get(type_.__name__):
        return dict(seed)
    return {
        wire: _scalars(type_, info)[1]
        for wire, info in fields_of(type_).items()
        if info.always and info.type in (str, int, int | str)
    }


def _scalars(owner: type[msgspec.Struct], info: FieldInfo) -> tuple[Any, ...]:
    """What is tried of the scalars that a field is, or holds."""
    if values := ENUMS.get((owner.__name__, info.wire)):
        return ("", *values, values[0].lower(), 1)
    if info.format in ("date-time", "micro-time"):
        return TIMES
    shape = info.shape
    while shape.item:
        shape = shape.item
    return SCALARS.get(shape.type, STRINGS)


def _values(shape: Shape, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
    if shape.struct:
        return {}, _seed(shape.struct), "a", [{}]
    if shape.choices:
        return tuple(value for choice in shape.choices for value in _values(choice, scalars))
    if not shape.item:
        return scalars
    held = _values(shape.item, scalars)
    if shape.holds is list:
        return [], [None], {}, *([one] for one in held), [held[1], held[1]]
    return {}, [], *({"a": one} for one in (None, *held)), {"": held[1]}, {"No Key!": held[1]}
