"""Protobuf, the media type `application/vnd.kubernetes.protobuf`: decodes a body into the plain data that its
JSON would be, and encodes the fields of a message.

Types give the fields, `numbers.txt` their numbers. Zero values that Go always writes, such as an empty string
or a zero time, may be decoded or left out: the JSON decoder treats both alike. A field of an unknown number
is one of a later version. It is dropped, like an unknown field of JSON.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from podling.model.codec.fields import FieldInfo, Shape, fields_of
from podling.model.errors import bad_request, unsupported_media_type
from podling.model.quantity import Quantity
from podling.model.time import micro_time, rfc3339

DOUBLE = struct.Struct("<d")
VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)
MAX_VARINT_BYTES = 10
MAGIC = b"k8s\0"
MAX_DEPTH = 64
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENVELOPE = {1: "type", 2: "raw"}


class WireError(ValueError):
    """The bytes are not a protobuf message of this type."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: (field number, value). A varint is an unsigned number, any other wire
    type gives its bytes. Groups, which no type has, are passed over. Raises WireError."""
    at, groups = 0, 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: int | bytes
        if kind == GROUP or (kind == GROUP_END and groups):
            groups += 1 if kind == GROUP else -1
            continue
        if kind == VARINT:
            value, at = _varint(data, at)
        else:
            if kind == LENGTH:
                length, at = _varint(data, at)
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
            else:
                raise WireError(f"there is no wire type {kind}")
            if at + length > len(data):
                raise WireError("a field ends beyond its message")
            value, at = data[at : at + length], at + length
        if number == 0:
            raise WireError("there is no field 0")
        if not groups:
            yield number, value
    if groups:
        raise WireError("a group has no end")


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


def signed(value: int, bits: int = 64) -> int:
    """The value of an int32 or int64 field: two's complement. What an int32 has no bits for is cut off."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def decode(body: bytes, type_: type[Any]) -> dict[str, Any]:
    """The object in a body, as plain data. `kind` and `apiVersion` come from the envelope
    (`runtime.Unknown`). Raises StatusError: 400 for a malformed body, 415 for a kind without protobuf."""
    if type_.__name__ not in numbers():
        raise unsupported_media_type(("application/json", "application/yaml"))
    if not body.startswith(MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if body == MAGIC:
        raise bad_request("empty body")
    try:
        envelope = {_ENVELOPE.get(number): _bytes(value) for number, value in fields(body[len(MAGIC) :])}
        identity = {number: _text(value) for number, value in fields(envelope.get("type", b""))}
        data = _message(envelope.get("raw", b""), type_, 0)
    except (ValueError, OverflowError) as error:
        raise bad_request(f"error decoding protobuf: {error}") from error
    named = {"apiVersion": identity.get(1, ""), "kind": identity.get(2, "")}
    return {**data, **{key: value for key, value in named.items() if value}}


@cache
def numbers() -> Mapping[str, str]:
    """The line of `numbers.txt` for each type, by name. The file is read for the first protobuf body."""
    text = files(__package__).joinpath("numbers.txt").read_text(encoding="utf-8")
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: said for name, _, said in lines}


class Numbered(NamedTuple):
    """What a field number means: a field of the type, or a message whose fields are fields of the type."""

    field: FieldInfo | None
    """None for a field that podling does not have, and for such a message."""
    inlined: dict[int, Numbered]
    """The fields of such a message; otherwise empty."""


@cache
def numbered(type_: Any) -> dict[int, Numbered]:
    """What each field number of a type means."""
    tokens = numbers()[type_.__name__].replace("(", " ( ").replace(")", " ) ").split()
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
    _read_into(result, data, numbered(type_), depth)
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
    shape = field.shape
    if shape.item is None:
        result[field.wire] = _value(raw, shape, field.format, depth)
    elif shape.holds is list:
        result.setdefault(field.wire, []).append(_value(raw, shape.item, field.format, depth))
    else:
        entry = dict(fields(_bytes(raw)))
        value = _value(entry.get(2, b""), shape.item, field.format, depth)
        result.setdefault(field.wire, {})[_text(entry.get(1, b""))] = value


def _value(raw: int | bytes, shape: Shape, form: str, depth: int) -> Any:
    type_ = shape.type
    if type_ is str:
        return _time(_bytes(raw), form) if form in ("date-time", "micro-time") else _text(raw)
    if type_ is bool:
        return bool(_int(raw))
    if type_ is int:
        return signed(_int(raw), 32 if form == "int32" else 64)
    if type_ is bytes:
        return base64.b64encode(_bytes(raw)).decode()
    if type_ in (msgspec.Raw, Any):
        # FieldsV1 and RawExtension: JSON in a message around it.
        return msgspec.Raw(_bytes(dict(fields(_bytes(raw))).get(1, b"")) or b"null")
    if type_ is Quantity:
        return _text(dict(fields(_bytes(raw))).get(1, b"0"))
    if type_ == int | str:
        # {type, intVal, strVal}: type 1 is a string.
        parts = dict(fields(_bytes(raw)))
        return _text(parts.get(3, b"")) if parts.get(1, 0) else signed(_int(parts.get(2, 0)), 32)
    if shape.item:
        # A list inside a map is a message of its own, such as ExtraValue.
        return [_value(item, shape.item, "", depth) for _, item in fields(_bytes(raw))]
    if shape.struct:
        return _message(_bytes(raw), type_, depth + 1)
    if shape.choices:
        return _choice(_bytes(raw), shape, depth)
    if type_ in (float, int | float):
        return DOUBLE.unpack(_bytes(raw))[0]
    raise WireError(f"no protobuf form of {type_}")


def _choice(data: bytes, shape: Shape, depth: int) -> Any:
    """A message with a field for each: a boolean before the schema, a list after it."""
    schema, other = sorted(shape.choices, key=lambda choice: choice.struct is None)
    found = [(number == (2 if other.type is bool else 1), raw) for number, raw in fields(data)]
    if schemas := [raw for is_schema, raw in found if is_schema]:
        return _value(schemas[-1], schema, "", depth)
    if other.item is None:
        return any(bool(raw) for _, raw in found)
    return [_value(raw, other.item, "", depth) for _, raw in found]


def _time(data: bytes, form: str) -> str | None:
    """A Timestamp {seconds, nanos} in the spelling of `form`; None if both are zero: Go's zero time."""
    parts = dict(fields(data))
    seconds, nanos = signed(_int(parts.get(1, 0))), signed(_int(parts.get(2, 0)))
    if not seconds and not nanos:
        return None
    moment = EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    return micro_time(moment) if form == "micro-time" else rfc3339(moment)


def _bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise WireError("wrong wireType 0")
    return raw


def _int(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise WireError("wrong wireType 2")
    return raw


def _text(raw: int | bytes) -> str:
    # Go keeps bytes that are no UTF-8, and shows them so.
    return _bytes(raw).decode(errors="replace")


def encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_bytes(number: int, payload: bytes) -> bytes:
    """A field whose value is a message or bytes."""
    return encode_varint(number << 3 | LENGTH) + encode_varint(len(payload)) + payload


def encode_text(number: int, value: str) -> bytes:
    """A string field; nothing for the empty string, since a missing field means the same."""
    return encode_bytes(number, value.encode()) if value else b""


def encode_flag(number: int, value: bool) -> bytes:
    return encode_varint(number << 3 | VARINT) + b"\x01" if value else b""
