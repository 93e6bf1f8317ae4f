"""Header blocks of HTTP/2 (HPACK, RFC 7541), as far as gRPC needs them: what is sent never refers to a table,
and the peer is told to keep none, so each block is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

STATUSES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
"""Indexes of the static table for `:status`; all else that it names is of no interest here."""
STATIC = 61
SYMBOLS = {
    5: "012aceiost",
    6: " %-./3456789=A_bdfghlmnpru",
    7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: "&*,;XZ",
    10: '!"()?',
    11: "'+|",
    12: "#>",
    13: "\0$@[]~",
    14: "^}",
    15: "<`{",
    19: "\\",
}
"""Characters by the bits of their codes, which count up: all of ASCII that gRPC sends."""


class HeaderError(Exception):
    """A block that cannot be read."""


def _codes() -> dict[tuple[int, int], str]:
    """Bits and code → character."""
    codes, code, before = {}, 0, 0
    for bits, symbols in SYMBOLS.items():
        code <<= bits - before
        for symbol in symbols:
            codes[bits, code] = symbol
            code += 1
        before = bits
    return codes


_CODES = _codes()


def encode(headers: Iterable[tuple[str, str]]) -> bytes:
    """Names and values as they are, referring to nothing."""
    return b"".join(b"\0" + _string(name) + _string(value) for name, value in headers)


def _string(text: str) -> bytes:
    data, length = text.encode(), bytearray()
    left = len(data)
    if left < 127:
        return bytes((left,)) + data
    left -= 127
    while left >= 128:
        length.append(left & 127 | 128)
        left >>= 7
    return b"\x7f" + bytes((*length, left)) + data


@lru_cache(64)
def decode(block: bytes) -> tuple[tuple[str, str], ...]:
    """Names and values; of the static table only what is in STATUSES, all others have no name. Raises
    HeaderError."""
    found: list[tuple[str, str]] = []
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 7)
                found.append(_named(index))
                continue
            if first & 0xE0 == 0x20:
                # The size of a table, of which the peer was told that there is none.
                _, at = _integer(block, at, 5)
                continue
            index, at = _integer(block, at, 6 if first & 0x40 else 4)
            if index:
                name = _named(index)[0]
            else:
                name, at = _text(block, at)
            value, at = _text(block, at)
            found.append((name, value))
    except IndexError as error:
        raise HeaderError("a header block ends early") from error
    return tuple(found)


def _named(index: int) -> tuple[str, str]:
    """Raises HeaderError."""
    if not 0 < index <= STATIC:
        raise HeaderError(f"a header refers to entry {index} of a table that there is not")
    return (":status", STATUSES[index]) if index in STATUSES else ("", "")


def _integer(block: bytes, at: int, prefix: int) -> tuple[int, int]:
    """The number, and where the rest begins. Raises IndexError."""
    most = (1 << prefix) - 1
    value, at = block[at] & most, at + 1
    if value < most:
        return value, at
    shift = 0
    while True:
        byte, at = block[at], at + 1
        value += (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, at
        if shift > 28:
            raise HeaderError("a number in a header block is too large")


def _text(block: bytes, at: int) -> tuple[str, int]:
    """Raises HeaderError, IndexError."""
    is_coded = block[at] & 0x80
    length, at = _integer(block, at, 7)
    data = block[at : at + length]
    if len(data) < length:
        raise HeaderError("a header block ends early")
    return _decoded(data) if is_coded else data.decode("latin-1"), at + length


def _decoded(data: bytes) -> str:
    """Raises HeaderError."""
    found, code, bits = [], 0, 0
    for byte in data:
        for place in range(7, -1, -1):
            code, bits = code << 1 | byte >> place & 1, bits + 1
            symbol = _CODES.get((bits, code))
            if symbol is not None:
                found.append(symbol)
                code, bits = 0, 0
            elif bits > 19:
                raise HeaderError("a header has a character that is not ASCII")
    if bits > 7 or code != (1 << bits) - 1:
        raise HeaderError("a header ends within a character")
    return "".join(found)
