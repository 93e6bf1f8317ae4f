"""Unknown and duplicate fields of a body, for `fieldValidation`.

Almost no body has any, so two fast checks come first: a copy of the type that refuses unknown fields, and a
count of the colons before and after duplicates are dropped.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from types import GenericAlias
from typing import Any, ForwardRef

import msgspec

from podling.model.codec.fields import Part, Shape, fields_of, shape_of
from podling.model.codec.json import decode_data, decode_hook
from podling.model.errors import bad_request

MOST_REPORTED = 100

_Path = tuple[()] | tuple["_Path", str | int]
"""From the innermost step out. Written only for what is said: a long key would be copied into each below."""


def field_faults(data: bytes, type_: Any, *, has_repeats: bool | None = None) -> list[str]:
    """`unknown field "spec.containers[0].foo"`, `duplicate field "spec.x"`, in the order of `data`.
    `has_repeats`: whether it may have a key twice, if the caller knows.

    With `fieldValidation=Warn` each is a warning of its own; `strict_message` joins them for `Strict`. Raises
    StatusError 400 when `data` is not JSON.
    """
    if not (may_repeat_keys(data, decode_data(data)) if has_repeats is None else has_repeats):
        try:
            _strict_decoder(type_).decode(data)
        except msgspec.ValidationError:
            pass
        else:
            return []
    found: list[str] = []
    try:
        walked = json.loads(data, object_pairs_hook=Members)
        for fault in walk(walked, shape_of(type_), ()):
            if fault not in found:
                found.append(fault)
            if len(found) == MOST_REPORTED:
                break
    except RecursionError as error:
        raise bad_request("exceeded max depth") from error
    return found


def strict_message(faults: list[str]) -> str:
    """The message of the 400 that `fieldValidation=Strict` answers."""
    return f"strict decoding error: {', '.join(faults)}"


def may_repeat_keys(data: bytes, decoded: Any) -> bool:
    """False only if no object in `data` has a key twice. `decoded`: the same as plain data. A colon in a text
    is counted like one behind a key both times, unless it is written `\\u003a`: then the answer is True."""
    once = msgspec.json.encode(decoded)
    return data.count(b":") != once.count(b":") or b"\\u003a" in data or b"\\u003A" in data


@functools.cache
def _strict_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict(shape_of(type_)), dec_hook=decode_hook)


@functools.cache
def _strict(shape: Shape, owner: type[msgspec.Struct] | None = None) -> Any:
    """A type of the same shape that refuses unknown fields and takes null for everything, as Go does.
    `owner`: the struct around it, if it holds more of its kind; what may be a struct is not looked into.
    What has no fields is passed over without reading it."""
    if shape.part is None:
        return msgspec.Raw
    strict: Any = shape.type
    if shape.struct and shape.struct is owner:
        strict = ForwardRef(strict.__name__)
    elif shape.struct:
        fields = [
            (
                field.attribute,
                _strict(field.shape, shape.struct if field.shape.part is shape.struct else None),
                msgspec.field(default=None, name=field.wire),
            )
            for field in fields_of(shape.struct).values()
        ]
        strict = msgspec.defstruct(strict.__name__, fields, forbid_unknown_fields=True)
        setattr(strict, strict.__name__, strict)
    elif shape.item:
        item: Any = _strict(shape.item, owner)
        strict = GenericAlias(list, item) if shape.holds is list else GenericAlias(dict, (str, item))
    return strict | None


class Members(list[tuple[str, Any]]):
    """A JSON object with all its members in order, including duplicates."""


def walk(data: Any, shape: Shape, path: _Path) -> Iterator[str]:
    """The faults of `data`, with objects as `Members`, in its order; one may come several times."""
    if isinstance(data, Members):
        fields = fields_of(shape.struct) if shape.struct else None
        seen: set[str] = set()
        if shape.choices:
            return
        for name, value in data:
            if fields is None:
                inner = shape.item if shape.holds is dict and shape.item else shape_of(Any)
            elif name in fields:
                inner = fields[name].shape
            else:
                yield f'unknown field "{_shown((path, name))}"'
                continue
            if name in seen:
                yield f'duplicate field "{_shown((path, name))}"'
            seen.add(name)
            # What an API type keeps as it is, Kubernetes does not look into.
            if not (inner.type is Any and shape.struct and issubclass(shape.struct, Part)):
                yield from walk(value, inner, (path, name))
    elif isinstance(data, list) and (shape.holds is list or shape.type is Any):
        for index, item in enumerate(data):
            yield from walk(item, shape.item or shape, (path, index))


def _shown(path: _Path) -> str:
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if path else step)
    return "".join(reversed(steps))
