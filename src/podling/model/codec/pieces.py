"""Encodes large objects in pieces, so that other threads run meanwhile.

One call of msgspec's encoder keeps Python's lock to its end: 8 ms for 30,000 keys, which it sorts. Here every
long list and map is encoded by itself, SHORT items at a time, and put in as it is. The bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

SHORT = 1000
"""Items that are encoded in 0.1 ms, unless they are large themselves."""

_HOLDING = (msgspec.Struct, dict, list)

Encode = Callable[[Any], bytes]
"""An encoder that sorts keys."""


def encode(value: Any, encoder: Encode) -> bytes:
    return encoder(_prepared(value, encoder))


def _prepared(value: Any, encoder: Encode) -> Any:
    """`value` with everything long in it encoded; itself if nothing is."""
    if isinstance(value, msgspec.Struct):
        changed = _changed(((name, getattr(value, name)) for name in value.__struct_fields__), encoder)
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        changed = _changed(value.items(), encoder)
        value = {**value, **changed} if changed else value
        return _map(value, encoder) if len(value) > SHORT else value
    if isinstance(value, list):
        if value and isinstance(value[0], _HOLDING):
            value = [_prepared(item, encoder) for item in value]
        return _list(value, encoder) if len(value) > SHORT else value
    return value


def _changed(members: Iterable[tuple[str, Any]], encoder: Encode) -> dict[str, Any]:
    return {
        name: prepared
        for name, value in members
        if value and isinstance(value, _HOLDING) and (prepared := _prepared(value, encoder)) is not value
    }


def _list(items: list[Any], encoder: Encode) -> msgspec.Raw:
    pieces = (encoder(items[at : at + SHORT])[1:-1] for at in range(0, len(items), SHORT))
    return msgspec.Raw(b"[%b]" % b",".join(pieces))


def _map(members: Mapping[str, Any], encoder: Encode) -> msgspec.Raw:
    keys = in_order(list(members))
    pieces = (
        encoder({key: members[key] for key in keys[at : at + SHORT]})[1:-1]
        for at in range(0, len(keys), SHORT)
    )
    return msgspec.Raw(b"{%b}" % b",".join(pieces))


def in_order(keys: list[str]) -> list[str]:
    """Sorted, in several calls: each finds two runs that are in order, and merges them."""
    if len(keys) <= SHORT:
        return sorted(keys)
    middle = len(keys) // 2
    return sorted(in_order(keys[:middle]) + in_order(keys[middle:]))
