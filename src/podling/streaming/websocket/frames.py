"""`WebSocketCodec`: RFC 6455 without extensions, with messages in pieces as they arrive. Pings and closes are
answered and not shown.

podling's own, because a command that attaches waits for its import: a library's takes a sixth of all that a
command does. Frames that a server sends are never masked, so their payload is not copied.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
from typing import NamedTuple

from podling.streaming.wire import Answer, Chunks, Farewell, ProtocolError

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FIN, _RESERVED, _OPCODE, _MASKED, _LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_DATA, _CONTROL = frozenset({_CONTINUATION, _TEXT, _BINARY}), frozenset({_CLOSE, _PING, _PONG})
_SHORT, _TWO, _EIGHT = 125, 126, 127
"""The longest length in one byte, and what says that two or eight bytes have it."""
_NORMAL_CLOSURE = 1000
_MAY_CLOSE = frozenset({*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)})
"""Codes that may be sent (RFC 6455, 7.4, and IANA's registry)."""


class Piece(NamedTuple):
    """Some bytes of a message (text as UTF-8); `first` is set on the first piece of a message, `last` on its
    last."""

    data: bytes
    first: bool
    last: bool


class _Head(NamedTuple):
    """Of a frame; `size` is its own."""

    opcode: int
    is_last: bool
    length: int
    mask: bytes
    size: int


def accept_key(key: str) -> str:
    """Sec-WebSocket-Accept for a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


class WebSocketCodec:
    """One side of a WebSocket. Raises ProtocolError for what RFC 6455 does not allow."""

    def __init__(self, *, client: bool) -> None:
        self._client = client
        self._come = bytearray()
        self._head: _Head | None = None
        self._read = 0
        """Bytes of the payload of a data frame that were given on."""
        self._between_messages = True
        self._text: codecs.IncrementalDecoder | None = None
        self._was_closed = False
        self._said_goodbye = False

    def receive(self, data: bytes) -> list[Piece | Answer | Farewell]:
        self._come += data
        events: list[Piece | Answer | Farewell] = []
        # What comes after the farewell means nothing.
        while not self._was_closed and (found := self._next()) is not None:
            events += found
        return events

    def message(self, *chunks: bytes, text: bool = False) -> Chunks:
        opcode = _TEXT if text else _BINARY
        if self._client:
            return (self._masked(opcode, b"".join(chunks)),)
        return _head(opcode, sum(map(len, chunks))) + chunks[0], *chunks[1:]

    def close(self) -> bytes:
        """The close frame, once."""
        if self._said_goodbye:
            return b""
        self._said_goodbye = True
        return self._frame(_CLOSE, _NORMAL_CLOSURE.to_bytes(2, "big"))

    def _next(self) -> list[Piece | Answer | Farewell] | None:
        """What the next frame, or piece of one, means; None until more has come."""
        if self._head is None:
            self._head = self._take_head()
        head = self._head
        if head is None:
            return None
        if head.opcode in _CONTROL:
            if len(self._come) < head.length:
                return None
            return self._control(head, self._take(head))
        if head.length and not self._come:
            return None
        return [self._piece(head, self._take(head))]

    def _take_head(self) -> _Head | None:
        head = _read_head(self._come)
        if head is None:
            return None
        if bool(head.mask) == self._client:
            raise ProtocolError("a frame of a client is masked, and one of a server is not")
        if head.opcode in _DATA:
            if (head.opcode == _CONTINUATION) == self._between_messages:
                raise ProtocolError("a message goes on with continuations, and only a message does")
            if head.opcode == _TEXT:
                self._text = codecs.getincrementaldecoder("utf-8")()
        del self._come[: head.size]
        self._read = 0
        return head

    def _take(self, head: _Head) -> bytes:
        """What there is of the payload; the frame is over when it has come to its end."""
        come = self._come[: head.length - self._read]
        del self._come[: len(come)]
        piece = _xor(come, head.mask, self._read) if head.mask else bytes(come)
        self._read += len(piece)
        if self._read == head.length:
            self._head = None
        return piece

    def _piece(self, head: _Head, data: bytes) -> Piece:
        is_last = head.is_last and self._head is None
        if self._text is not None:
            try:
                self._text.decode(data, is_last)
            except UnicodeDecodeError as error:
                raise ProtocolError(f"a text is no UTF-8: {error}") from error
        first, self._between_messages = self._between_messages, is_last
        if is_last:
            self._text = None
        return Piece(data, first, is_last)

    def _control(self, head: _Head, payload: bytes) -> list[Piece | Answer | Farewell]:
        if head.opcode == _PING:
            return [Answer(self._frame(_PONG, payload))]
        if head.opcode == _PONG:
            return []
        if payload and int.from_bytes(payload[:2], "big") not in _MAY_CLOSE:
            raise ProtocolError("a close has a code that nobody may send")
        try:
            payload[2:].decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a close has a reason that is no UTF-8: {error}") from error
        self._was_closed = True
        return [Answer(self.close()), Farewell(final=True)]

    def _frame(self, opcode: int, payload: bytes) -> bytes:
        return self._masked(opcode, payload) if self._client else _head(opcode, len(payload)) + payload

    def _masked(self, opcode: int, payload: bytes) -> bytes:
        mask = os.urandom(4)
        return b"".join((_head(opcode, len(payload), _MASKED), mask, _xor(payload, mask, 0)))


def _head(opcode: int, length: int, masked: int = 0) -> bytes:
    if length <= _SHORT:
        return bytes((_FIN | opcode, masked | length))
    if length < 1 << 16:
        return bytes((_FIN | opcode, masked | _TWO)) + length.to_bytes(2, "big")
    return bytes((_FIN | opcode, masked | _EIGHT)) + length.to_bytes(8, "big")


def _read_head(come: bytearray) -> _Head | None:
    """None until it has come. Raises ProtocolError."""
    if len(come) < 2:
        return None
    first, second = come[0], come[1]
    opcode, length, at = first & _OPCODE, second & _LENGTH, 2
    if first & _RESERVED:
        raise ProtocolError("a frame has a reserved bit, and no extension was agreed on")
    if opcode not in _DATA and opcode not in _CONTROL:
        raise ProtocolError(f"a frame has the unknown opcode {opcode:#x}")
    if opcode in _CONTROL and not (first & _FIN and length <= _SHORT):
        raise ProtocolError("a control frame is short, and whole")
    if length > _SHORT:
        at += 2 if length == _TWO else 8
        if len(come) < at:
            return None
        is_short, length = length == _TWO, int.from_bytes(come[2:at], "big")
        if length <= _SHORT or (not is_short and not 1 << 16 <= length < 1 << 63):
            raise ProtocolError("a length has the shortest form there is")
    size = at + (4 if second & _MASKED else 0)
    if len(come) < size:
        return None
    return _Head(opcode, bool(first & _FIN), length, bytes(come[at:size]), size)


def _xor(data: bytes | bytearray, mask: bytes, at: int) -> bytes:
    """Masked, or unmasked, from the byte `at` of its payload on: as one large number, which is quickest."""
    begin, length = at % len(mask), len(data)
    key = (mask[begin:] + mask[:begin]) * -(-length // len(mask))
    mixed = int.from_bytes(data, "little") ^ int.from_bytes(key[:length], "little")
    return mixed.to_bytes(length, "little")
