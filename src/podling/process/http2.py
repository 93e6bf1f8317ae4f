"""One connection of gRPC over HTTP/2 (RFC 9113) as its client has it: takes bytes, returns events, and has
bytes to send. Who owns the socket calls `take` after whatever may have something to send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from struct import Struct
from typing import NamedTuple
from urllib.parse import unquote

from podling.process.hpack import HeaderError, decode, encode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
TABLE_SIZE, ENABLE_PUSH, INITIAL_WINDOW, MAX_FRAME = 1, 2, 4, 5
LONGEST_FRAME, USUAL_WINDOW = 1 << 14, (1 << 16) - 1
FRAME = Struct(">HBBBI")
"""Before what a frame holds: two bytes and one of its length, kind, flags, stream."""
MESSAGE = Struct(">BI")
"""Before each message of gRPC: whether it is compressed, and its length."""
WINDOW = (1 << 31) - 1
"""What the peer may send before it hears of more: it is read at once."""
LAST_STREAM = (1 << 31) - 3
NO_ERROR, REFUSED_STREAM, CANCEL = 0, 7, 8
OK, CANCELLED, UNKNOWN, DEADLINE_EXCEEDED = 0, 1, 2, 4
RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 8, 12, 13, 14
"""Codes of gRPC."""
LONGEST_CODE = 3
"""Digits of a code."""
RESETS: Mapping[int, int] = {REFUSED_STREAM: UNAVAILABLE, CANCEL: CANCELLED}
"""Codes of HTTP/2 → of gRPC."""
Headers = tuple[tuple[str, str], ...]
NOT_BEGUN = "not begun"
"""In the messages about streams that the peer has certainly not looked at."""


class ProtocolError(Exception):
    """The peer does not speak as it has to; the connection is of no use."""


class Ready(NamedTuple):
    """The peer has said how it speaks: it is one of HTTP/2."""


class Message(NamedTuple):
    stream: int
    data: bytes


class Ended(NamedTuple):
    """A stream, with its status of gRPC: 0 is success."""

    stream: int
    status: int
    message: str


class Pong(NamedTuple):
    """The peer answers a ping."""


Event = Ready | Message | Ended | Pong


class _Stream:
    def __init__(self, window: int) -> None:
        self.received = bytearray()
        """Of a message that has not come whole."""
        self.consumed = 0
        self.window = window
        self.waits = bytearray()
        """To be sent once the window lets it."""
        self.ends = False
        """Nothing comes after that."""
        self.status: tuple[int, str] | None = None


class Http2:
    """`largest`: bytes of a message; who sends a larger one is not listened to any more."""

    def __init__(self, authority: str, *, secure: bool, largest: int = WINDOW) -> None:
        self._largest = largest
        self._scheme, self._authority = "https" if secure else "http", authority
        self._heads: dict[tuple[str, Headers], bytes] = {}
        self._streams: dict[int, _Stream] = {}
        self._next = 1
        self._received = b""
        """Of a frame that has not come whole."""
        self._block = bytearray()
        self._of_block = 0, 0
        """Stream and flags of a header block of which a part has come."""
        self._window = self._first_window = USUAL_WINDOW
        self._longest = LONGEST_FRAME
        self._consumed = 0
        self.is_closing = False
        """No stream can begin any more."""
        settings = ((TABLE_SIZE, 0), (ENABLE_PUSH, 0), (INITIAL_WINDOW, WINDOW))
        content = b"".join(name.to_bytes(2) + value.to_bytes(4) for name, value in settings)
        self._out = bytearray(PREFACE + _frame(SETTINGS, 0, 0, content))
        self._out += _frame(WINDOW_UPDATE, 0, 0, (WINDOW - USUAL_WINDOW).to_bytes(4))

    def take(self) -> bytes:
        """What is to be sent now."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def ask(
        self,
        path: str,
        message: bytes,
        headers: Headers = (),
        *,
        seconds: float | None = None,
        more_follows: bool = False,
    ) -> int:
        """Begin a stream with a message. The peer is told that it is given up after `seconds`."""
        stream, self._next = self._next, self._next + 2
        self.is_closing = self.is_closing or self._next > LAST_STREAM
        head = self._heads.get((path, headers))
        if head is None:
            head = self._heads[path, headers] = self._head(path, headers)
        if seconds is not None:
            # At most eight digits, and a unit.
            milliseconds, most = ceil(1000 * seconds), 10**8 - 1
            timeout = f"{milliseconds}m" if milliseconds <= most else f"{min(ceil(seconds), most)}S"
            head += encode((("grpc-timeout", timeout),))
        self._out += _frame(HEADERS, END_HEADERS, stream, head)
        made = self._streams[stream] = _Stream(self._first_window)
        made.ends = not more_follows
        made.waits += MESSAGE.pack(0, len(message)) + message
        self._flush(stream, made)
        return stream

    def cancel(self, stream: int) -> None:
        if self._streams.pop(stream, None) is not None:
            self._out += _frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4))

    def ping(self) -> None:
        self._out += _frame(PING, 0, 0, bytes(8))

    def receive(self, data: bytes) -> Sequence[Event]:
        """Raises ProtocolError."""
        received, at, events = self._received + data, 0, list[Event]()
        while len(received) - at >= FRAME.size:
            high, low, kind, flags, stream = FRAME.unpack_from(received, at)
            length = high << 8 | low
            if length > LONGEST_FRAME:
                raise ProtocolError(f"a frame of {length} bytes came: is it of HTTP/2?")
            begin = at + FRAME.size
            if len(received) < begin + length:
                break
            at = begin + length
            try:
                self._hear(kind, flags, stream & 0x7FFFFFFF, received[begin:at], events)
            except (IndexError, HeaderError) as error:
                raise ProtocolError(str(error)) from error
        self._received = received[at:]
        return events

    def _head(self, path: str, headers: Headers) -> bytes:
        head = {
            ":method": "POST",
            ":scheme": self._scheme,
            ":path": path,
            ":authority": self._authority,
            "te": "trailers",
            "content-type": "application/grpc",
            "user-agent": "podling",
        }
        return encode((head | dict(headers)).items())

    def _hear(self, kind: int, flags: int, stream: int, content: bytes, events: list[Event]) -> None:
        """One frame. Raises ProtocolError, HeaderError, IndexError."""
        if self._of_block[0] and kind != CONTINUATION:
            raise ProtocolError("a header block was not ended")
        if kind == DATA:
            self._data(flags, stream, content, events)
        elif kind == HEADERS:
            content = _unpadded(flags, content)
            self._block += content[5:] if flags & PRIORITY else content
            self._of_block = stream, flags
            if flags & END_HEADERS:
                self._headers(events)
        elif kind == CONTINUATION:
            if stream != self._of_block[0]:
                raise ProtocolError("a header block goes on that has not begun")
            if len(self._block) + len(content) > LONGEST_FRAME:
                raise ProtocolError("a header block is endless")
            self._block += content
            if flags & END_HEADERS:
                self._headers(events)
        elif kind == WINDOW_UPDATE:
            self._open(stream, int.from_bytes(content[:4]) & 0x7FFFFFFF)
        elif kind == PING:
            if flags & ACK:
                events.append(Pong())
            else:
                self._out += _frame(PING, ACK, 0, content)
        elif kind == SETTINGS and not flags & ACK:
            self._settle(content)
            events.append(Ready())
        elif kind == RST_STREAM and self._streams.pop(stream, None) is not None:
            events.append(_reset(stream, int.from_bytes(content[:4])))
        elif kind == GOAWAY:
            self._go_away(int.from_bytes(content[:4]) & 0x7FFFFFFF, events)

    def _data(self, flags: int, stream: int, content: bytes, events: list[Event]) -> None:
        self._consumed += len(content)
        if self._consumed > WINDOW // 2:
            self._out += _frame(WINDOW_UPDATE, 0, 0, self._consumed.to_bytes(4))
            self._consumed = 0
        one = self._streams.get(stream)
        if one is None:
            return
        one.consumed += len(content)
        if one.consumed > WINDOW // 2:
            self._out += _frame(WINDOW_UPDATE, 0, stream, one.consumed.to_bytes(4))
            one.consumed = 0
        received: bytes | bytearray = _unpadded(flags, content)
        if one.received:
            one.received += received
            received = one.received
        at = 0
        while len(received) - at >= MESSAGE.size:
            is_compressed, length = MESSAGE.unpack_from(received, at)
            if is_compressed:
                raise ProtocolError("a message is compressed, which nobody has asked for")
            if length > self._largest:
                self.cancel(stream)
                too_large = f"a message of {length} bytes is larger than {self._largest}"
                events.append(Ended(stream, RESOURCE_EXHAUSTED, too_large))
                return
            begin = at + MESSAGE.size
            if len(received) < begin + length:
                break
            at = begin + length
            events.append(Message(stream, bytes(received[begin:at])))
        if received is one.received:
            del one.received[:at]
        else:
            # Most messages are of one frame, which is not copied.
            one.received += received[at:]
        if flags & END_STREAM:
            self._end(stream, one, events)

    def _headers(self, events: list[Event]) -> None:
        (stream, flags), block = self._of_block, bytes(self._block)
        self._of_block = 0, 0
        self._block.clear()
        one, found = self._streams.get(stream), dict(decode(block))
        if one is None:
            return
        if found.get(":status", "200") != "200":
            one.status = UNKNOWN, f"it answers with status {found[':status']} of HTTP"
        if "grpc-status" in found:
            code = found["grpc-status"]
            is_code = code.isascii() and code.isdecimal() and len(code) <= LONGEST_CODE
            one.status = int(code) if is_code else UNKNOWN, unquote(found.get("grpc-message", ""))
        if flags & END_STREAM:
            self._end(stream, one, events)

    def _end(self, stream: int, one: _Stream, events: list[Event]) -> None:
        del self._streams[stream]
        events.append(Ended(stream, *(one.status or (INTERNAL, "a stream ended without a status"))))

    def _settle(self, content: bytes) -> None:
        for at in range(0, len(content) - 5, 6):
            name, value = int.from_bytes(content[at : at + 2]), int.from_bytes(content[at + 2 : at + 6])
            if name == INITIAL_WINDOW:
                for one in self._streams.values():
                    one.window += value - self._first_window
                self._first_window = value
            elif name == MAX_FRAME:
                self._longest = value
        self._out += _frame(SETTINGS, ACK, 0, b"")
        self._flush_all()

    def _go_away(self, last: int, events: list[Event]) -> None:
        self.is_closing = True
        for stream in [one for one in self._streams if one > last]:
            del self._streams[stream]
            events.append(Ended(stream, UNAVAILABLE, f"{NOT_BEGUN}: the peer closes the connection"))

    def _open(self, stream: int, more: int) -> None:
        """The peer takes more."""
        if stream == 0:
            self._window += more
            self._flush_all()
        elif one := self._streams.get(stream):
            one.window += more
            self._flush(stream, one)

    def _flush_all(self) -> None:
        for stream, one in self._streams.items():
            if one.waits:
                self._flush(stream, one)

    def _flush(self, stream: int, one: _Stream) -> None:
        """Send what waits, as far as the windows let it."""
        while one.waits and (room := min(self._window, one.window, self._longest)) > 0:
            piece = bytes(one.waits[:room])
            del one.waits[:room]
            self._window -= len(piece)
            one.window -= len(piece)
            flags = END_STREAM if one.ends and not one.waits else 0
            self._out += _frame(DATA, flags, stream, piece)


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return FRAME.pack(len(content) >> 8, len(content) & 0xFF, kind, flags, stream) + content


def _unpadded(flags: int, content: bytes) -> bytes:
    """Raises ProtocolError, IndexError."""
    if not flags & PADDED:
        return content
    padding = content[0]
    if padding >= len(content):
        raise ProtocolError("a frame is padding only")
    return content[1 : len(content) - padding]


def _reset(stream: int, code: int) -> Ended:
    why = f"{NOT_BEGUN}: the peer refuses it" if code == REFUSED_STREAM else f"the stream was reset ({code})"
    return Ended(stream, RESETS.get(code, INTERNAL), why)
