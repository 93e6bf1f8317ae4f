"""Protobuf's wire format: from a body to the plain data that its JSON would be, by types and field numbers,
and the few functions to write messages.

Zero values that Go always writes (an empty string, a zero time) are decoded as such or left out: the JSON
decoder treats both alike. Unknown numbers are fields of a later version and dropped, like unknown JSON
fields.
"""

from __future__ import annotations

import base64
import typing
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from types import UnionType
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.protobuf.numbers import NUMBERS
from podling.model.codec.fields import FieldInfo, fields_of, is_struct, item_type
from podling.model.errors import bad_request, unsupported_media_type
from podling.model.quantity import Quantity
from podling.model.time import micro_time, rfc3339

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10


class WireError(ValueError):
    """The bytes are no message."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order; numbers are unsigned. Raises WireError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: int | bytes
        if kind == VARINT:
            value, at = _varint(data, at)
        else:
            length, at = _length(kind, data, at)
            if at + length > len(data):
                raise WireError("a field ends beyond its message")
            value, at = data[at : at + length], at + length
        if number == 0:
            raise WireError("there is no field 0")
        yield number, value


def _length(kind: int, data: bytes, at: int) -> tuple[int, int]:
    if kind == LENGTH:
        return _varint(data, at)
    if kind in (FIXED64, FIXED32):
        return (8 if kind == FIXED64 else 4), at
    raise WireError(f"there is no wire type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(MAX_VARINT_BYTES):
        if at + count >= len(data):
            raise WireError("a number ends beyond its message")
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + count + 1
    raise WireError("a number is longer than 64 bits")


def signed(value: int) -> int:
    """A number as Go's int32 and int64 fields mean it."""
    return value - (1 << 64) if value >> 63 else value


MAGIC = b"k8s\0"
MAX_DEPTH = 64
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ENVELOPE = {1: "type", 2: "raw"}


def decode(body: bytes, type_: type[Any]) -> dict[str, Any]:
    """The object in a body; `kind` and `apiVersion` are the envelope's. Raises StatusError 400, and
    415 for a kind that has no protobuf form."""
    if type_.__name__ not in NUMBERS:
        raise unsupported_media_type(("application/json", "application/yaml"))
    if not body.startswith(MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = {_ENVELOPE.get(number): _bytes(value) for number, value in fields(body[len(MAGIC) :])}
        identity = {number: _text(value) for number, value in fields(envelope.get("type", b""))}
        data = _message(envelope.get("raw", b""), type_, 0)
    except (ValueError, OverflowError) as error:
        raise bad_request(f"error decoding protobuf: {error}") from error
    named = {"apiVersion": identity.get(1, ""), "kind": identity.get(2, "")}
    return {**data, **{key: value for key, value in named.items() if value}}


class Numbered(NamedTuple):
    """What stands under one number: a field, or a message whose fields are those of the type."""

    field: FieldInfo | None
    inlined: dict[int, Numbered]


@cache
def _numbered(type_: Any) -> dict[int, Numbered]:
    tokens = NUMBERS[type_.__name__].replace("(", " ( ").replace(")", " ) ").split()
    return _parse(iter(tokens), fields_of(type_))


def _parse(tokens: Iterator[str], known: dict[str, FieldInfo]) -> dict[int, Numbered]:
    found: dict[int, Numbered] = {}
    number = 1
    for token in tokens:
        if token.isdecimal():
            number = int(token)
        elif token == ")":
            break
        else:
            inlined = _parse(tokens, known) if token == "(" else {}
            found[number] = Numbered(known.get(token), inlined)
            number += 1
    return found


def _message(data: bytes, type_: Any, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise WireError("nested too deeply")
    result: dict[str, Any] = {}
    _read_into(result, data, _numbered(type_), depth)
    return result


def _read_into(result: dict[str, Any], data: bytes, numbered: dict[int, Numbered], depth: int) -> None:
    for number, raw in fields(data):
        known = numbered.get(number)
        if known is None:
            continue
        if known.inlined:
            _read_into(result, _bytes(raw), known.inlined, depth)
        elif known.field is not None:
            _read_field(result, raw, known.field, depth)


def _read_field(result: dict[str, Any], raw: int | bytes, field: FieldInfo, depth: int) -> None:
    origin = typing.get_origin(field.type)
    if origin is list:
        result.setdefault(field.wire, []).append(_value(raw, item_type(field.type), "", depth))
    elif origin is dict:
        entry = dict(fields(_bytes(raw)))
        value = _value(entry.get(2, b""), item_type(field.type), "", depth)
        result.setdefault(field.wire, {})[_text(entry.get(1, b""))] = value
    else:
        result[field.wire] = _value(raw, field.type, field.format, depth)


def _value(raw: int | bytes, type_: Any, form: str, depth: int) -> Any:
    if type_ is str:
        return _time(_bytes(raw), form) if form in ("date-time", "micro-time") else _text(raw)
    if type_ is bool:
        return bool(raw)
    if type_ is int:
        return _signed(_int(raw))
    if type_ is bytes:
        return base64.b64encode(_bytes(raw)).decode()
    if type_ is msgspec.Raw:
        return msgspec.Raw(_bytes(dict(fields(_bytes(raw))).get(1, b"")) or b"null")
    if type_ is Quantity:
        return _text(dict(fields(_bytes(raw))).get(1, b""))
    if typing.get_origin(type_) in (UnionType, typing.Union):
        return _int_or_string(_bytes(raw))
    if typing.get_origin(type_) is list:
        # A list inside a map is a message of its own, such as ExtraValue.
        return [_value(item, item_type(type_), "", depth) for _, item in fields(_bytes(raw))]
    if is_struct(type_):
        return _message(_bytes(raw), type_, depth + 1)
    raise WireError(f"no protobuf form of {type_}")


def _time(data: bytes, form: str) -> str | None:
    """A Timestamp; both parts zero is Go's zero time: unset."""
    parts = dict(fields(data))
    seconds, nanos = _signed(_int(parts.get(1, 0))), _signed(_int(parts.get(2, 0)))
    if not seconds and not nanos:
        return None
    moment = EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    return micro_time(moment) if form == "micro-time" else rfc3339(moment)


def _int_or_string(data: bytes) -> int | str:
    """{type, intVal, strVal}: type 1 is a string."""
    parts = dict(fields(data))
    return _text(parts.get(3, b"")) if parts.get(1, 0) else _signed(_int(parts.get(2, 0)))


def _signed(value: int) -> int:
    """An int32 or int64: two's complement in 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def _bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise WireError("wrong wireType 0")
    return raw


def _int(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise WireError("wrong wireType 2")
    return raw


def _text(raw: int | bytes) -> str:
    return _bytes(raw).decode()


def encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_bytes(number: int, payload: bytes) -> bytes:
    """A field that is a message, or bytes."""
    return encode_varint(number << 3 | LENGTH) + encode_varint(len(payload)) + payload


def encode_text(number: int, value: str) -> bytes:
    """Nothing for the empty string, which is what its absence means."""
    return encode_bytes(number, value.encode()) if value else b""


def encode_flag(number: int, value: bool) -> bytes:
    return encode_varint(number << 3 | VARINT) + b"\x01" if value else b""
