"""SPDY/3.1 frames: reading them from bytes and writing them.

Control frames are read whole. Data frames are read piece by piece as they arrive, so that a frame of 16 MiB
does not need 16 MiB of memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from podling.streaming.wire import ProtocolError

VERSION = 3
MAX_STREAM_ID = 0x7FFFFFFF
MAX_DATA = 0xFFFFFF
MAX_CONTROL = 64 * 1024
FLAG_FIN = 0x01
FLAG_UNIDIRECTIONAL = 0x02
HEADER_SIZE = 8

_HEADER = struct.Struct(">HHI")
_NUMBER = struct.Struct(">I")
_PAIR = struct.Struct(">II")


class Type(IntEnum):
    """Control frames, SPDY/3.1 section 2.6."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ResetStatus(IntEnum):
    """Why a stream is reset, section 2.6.3."""

    PROTOCOL_ERROR = 1
    REFUSED_STREAM = 3
    CANCEL = 5


_SIZES = {Type.RST_STREAM: 8, Type.PING: 4, Type.GOAWAY: 8, Type.WINDOW_UPDATE: 8}
_LEAST_SIZES = {Type.SYN_STREAM: 10, Type.SYN_REPLY: 4, Type.SETTINGS: 4, Type.HEADERS: 4}


class Control(NamedTuple):
    """A whole control frame; `body` is what follows its header."""

    type: Type
    flags: int
    body: bytes

    @property
    def first(self) -> int:
        """The first number of the body: a stream id, except in SETTINGS and PING."""
        number: int = _NUMBER.unpack_from(self.body)[0]
        return number if self.type is Type.PING else number & MAX_STREAM_ID


class DataPiece(NamedTuple):
    """Some bytes of a data frame; `fin` is set on the last of them, if the frame ends the stream."""

    stream: int
    data: bytes
    fin: bool


def control(kind: Type, body: bytes, flags: int = 0) -> bytes:
    return _HEADER.pack(0x8000 | VERSION, kind, flags << 24 | len(body)) + body


def data_header(stream: int, length: int, fin: bool = False) -> bytes:
    return _PAIR.pack(stream, (FLAG_FIN if fin else 0) << 24 | length)


def syn_stream(stream: int, block: bytes, flags: int = 0) -> bytes:
    return control(Type.SYN_STREAM, _PAIR.pack(stream, 0) + b"\0\0" + block, flags)


def numbered(kind: Type, number: int, rest: bytes = b"", flags: int = 0) -> bytes:
    return control(kind, _NUMBER.pack(number) + rest, flags)


def reset(stream: int, status: ResetStatus) -> bytes:
    return control(Type.RST_STREAM, _PAIR.pack(stream, status))


def goaway(last_stream: int) -> bytes:
    return control(Type.GOAWAY, _PAIR.pack(last_stream, 0))


class FrameReader:
    """Cuts bytes into frames. Raises ProtocolError for bytes that are no SPDY/3.1."""

    def __init__(self) -> None:
        self._buffer = b""
        self._stream = 0
        self._left = 0
        self._fin = False

    def read(self, data: bytes) -> Iterator[Control | DataPiece]:
        """The frames in `data` and what was left before; data frames come in pieces, as they arrive."""
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        at, end = 0, len(data)
        while at < end:
            if self._left:
                taken = min(self._left, end - at)
                self._left -= taken
                yield DataPiece(self._stream, data[at : at + taken], self._fin and not self._left)
                at += taken
                continue
            if end - at < HEADER_SIZE:
                break
            first, second = _PAIR.unpack_from(data, at)
            flags, length = second >> 24, second & MAX_DATA
            if not first & 0x80000000:
                at += HEADER_SIZE
                yield from self._begin_data(first, flags, length)
                continue
            kind = _kind(first, length)
            if end - at < HEADER_SIZE + length:
                break
            at += HEADER_SIZE
            yield Control(kind, flags, data[at : at + length])
            at += length
        self._buffer = data[at:]

    def _begin_data(self, stream: int, flags: int, length: int) -> Iterator[DataPiece]:
        if not stream:
            raise ProtocolError("data on stream 0")
        self._stream, self._left, self._fin = stream, length, bool(flags & FLAG_FIN)
        if not length:
            yield DataPiece(stream, b"", self._fin)


def _kind(first: int, length: int) -> Type:
    version, number = first >> 16 & 0x7FFF, first & 0xFFFF
    if version != VERSION:
        raise ProtocolError(f"SPDY version {version}")
    try:
        kind = Type(number)
    except ValueError as error:
        raise ProtocolError(f"control frame of type {number}") from error
    if length > MAX_CONTROL:
        raise ProtocolError(f"control frame of {length} bytes")
    if length != _SIZES.get(kind, length) or length < _LEAST_SIZES.get(kind, 0):
        raise ProtocolError(f"{kind.name} frame of {length} bytes")
    return kind
