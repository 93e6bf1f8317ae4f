"""Reading the wire format of protobuf: the fields of a message as pairs of a number and a value."""

from __future__ import annotations

from collections.abc import Iterator

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
