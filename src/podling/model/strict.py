"""Unknown and duplicate fields of a request body, found as Kubernetes' field validation finds them.

Almost every body has none, so that is settled first at full speed: by a copy of the type that refuses unknown
fields, and a count of the keys before and after repeated ones are dropped. Only other bodies are walked.
"""

from __future__ import annotations

import functools
import json
import typing
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

import msgspec

from podling.model.errors import bad_request
from podling.model.fields import fields_of, is_struct, item_type
from podling.model.json import decode_data, decode_hook

MOST_REPORTED = 100
_KEY_END = b'":'


def field_faults(data: bytes, type_: type[Any]) -> list[str]:
    """`unknown field "spec.containers[0].foo"`, `duplicate field "spec.x"`, in the order of `data`.

    With `fieldValidation=Warn` each is a warning of its own; `strict_message` joins them for `Strict`. Raises
    StatusError 400 when `data` is not JSON.
    """
    if not may_repeat_keys(data) and _knows_all(data, type_):
        return []
    try:
        return _told(data, type_)
    except RecursionError as error:
        raise bad_request("exceeded max depth") from error


def _told(data: bytes, type_: type[Any]) -> list[str]:
    walked = json.loads(data, object_pairs_hook=_Pairs)
    found: list[str] = []
    for fault in _walk(walked, type_, ()):
        if fault not in found:
            found.append(fault)
        if len(found) == MOST_REPORTED:
            break
    return found


def strict_message(faults: list[str]) -> str:
    return f"strict decoding error: {', '.join(faults)}"


_Path = tuple[()] | tuple["_Path", str | int]
"""From the innermost step out. Written only for what is said: a long key would be copied into each below."""


class _Pairs(list[tuple[str, Any]]):
    """An object with all its members, in order, repeated ones too."""


def may_repeat_keys(data: bytes) -> bool:
    """An escaped quote before a colon counts like a key, before as after, unless it is written `\\u0022`."""
    once = msgspec.json.encode(decode_data(data))
    if once == data:
        return False
    compact = msgspec.json.format(data, indent=-1)
    return b"\\u0022" in data or compact.count(_KEY_END) != once.count(_KEY_END)


def _knows_all(data: bytes, type_: Any) -> bool:
    try:
        _strict_decoder(type_).decode(data)
    except msgspec.ValidationError:
        return False
    return True


@functools.cache
def _strict_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict(type_), dec_hook=decode_hook)


@functools.cache
def _strict(type_: Any) -> Any:
    """The same shape, refusing unknown fields."""
    if is_struct(type_):
        hints = typing.get_type_hints(type_)
        fields = [
            (name, _strict(hints[name]), msgspec.field(default=None, name=wire))
            for name, wire in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
        ]
        return msgspec.defstruct(type_.__name__, fields, forbid_unknown_fields=True)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (typing.Union, UnionType):
        return functools.reduce(lambda one, other: one | other, map(_strict, arguments))
    return origin[tuple(map(_strict, arguments))] if origin in (list, dict) else type_


def _walk(data: Any, type_: Any, path: _Path) -> Iterator[str]:
    if isinstance(data, _Pairs):
        yield from _walk_members(data, _member_type(type_), path)
    elif isinstance(data, list) and typing.get_origin(type_) is list:
        for index, item in enumerate(data):
            yield from _walk(item, item_type(type_), (path, index))


def _walk_members(members: _Pairs, type_of: Callable[[str], Any], path: _Path) -> Iterator[str]:
    seen: set[str] = set()
    for name, value in members:
        found = type_of(name)
        if found is None:
            yield f'unknown field "{_shown((path, name))}"'
            continue
        if name in seen:
            yield f'duplicate field "{_shown((path, name))}"'
        seen.add(name)
        yield from _walk(value, found, (path, name))


def _shown(path: _Path) -> str:
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if path else step)
    return "".join(reversed(steps))


def _member_type(type_: Any) -> Callable[[str], Any]:
    """From the name of a member to its type; None for a field the type does not have."""
    if is_struct(type_):
        fields = fields_of(type_)
        return lambda name: fields[name].type if name in fields else None
    inner = item_type(type_) if typing.get_origin(type_) is dict else Any
    return lambda _: inner
