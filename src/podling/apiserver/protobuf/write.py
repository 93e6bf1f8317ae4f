"""Writing the wire format of protobuf: a message is its fields, joined."""

from __future__ import annotations

VARINT, LENGTH = 0, 2


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def message(number: int, payload: bytes) -> bytes:
    """A field that is a message, or bytes."""
    return varint(number << 3 | LENGTH) + varint(len(payload)) + payload


def text(number: int, value: str) -> bytes:
    """Nothing for the empty string, which is what its absence means."""
    return message(number, value.encode()) if value else b""


def flag(number: int, value: bool) -> bytes:
    return varint(number << 3 | VARINT) + b"\x01" if value else b""
