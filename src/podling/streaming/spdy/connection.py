"""`SpdyWire`: one side of a SPDY/3.1 connection, with its streams and what each may still send.

Kubernetes' SPDY has no flow control of its own: spdystream neither sends nor reads WINDOW_UPDATE, and a slow
reader is felt through TCP. It is the same here. New streams are answered at once; SETTINGS and data for
streams that are already closed are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from podling.streaming.spdy import frames
from podling.streaming.spdy.frames import Control, DataPiece, FrameReader, ResetStatus, Type
from podling.streaming.spdy.headers import HeaderReader, HeaderWriter
from podling.streaming.wire import (
    Answer,
    Answered,
    Chunks,
    Data,
    Ended,
    Event,
    Farewell,
    Opened,
    ProtocolError,
    Reset,
)

MAX_STREAMS = 2000
"""Streams the peer may have open at once; more are refused (a port-forward needs two a connection)."""


class State(Enum):
    """Which sides may still send on a stream. A closed stream is removed."""

    OPEN = "open"
    ENDED_HERE = "ended here"
    ENDED_THERE = "ended there"


_AFTER_OUR_END = {State.OPEN: State.ENDED_HERE, State.ENDED_THERE: None}
_AFTER_THEIR_END = {State.OPEN: State.ENDED_THERE, State.ENDED_HERE: None}


class SpdyWire:
    """One side; streams of a client are odd, of a server even."""

    def __init__(self, *, client: bool) -> None:
        self._next = 1 if client else 2
        self._ours = self._next % 2
        self._last_opened = 0
        self._streams: dict[int, State] = {}
        self._reader = FrameReader()
        self._header_reader = HeaderReader()
        self._header_writer = HeaderWriter()
        self._handlers: dict[Type, Callable[[Control], list[Event]]] = {
            Type.SYN_STREAM: self._opened,
            Type.SYN_REPLY: self._replied,
            Type.HEADERS: self._more_headers,
            Type.RST_STREAM: self._reset,
            Type.PING: self._pinged,
            Type.GOAWAY: lambda _: [Farewell(final=False)],
        }

    def start(self) -> list[Event]:
        return []

    def receive(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for frame in self._reader.read(data):
            if isinstance(frame, DataPiece):
                self._arrived(frame, events)
            elif handler := self._handlers.get(frame.type):
                events += handler(frame)
        return events

    def _arrived(self, piece: DataPiece, events: list[Event]) -> None:
        if self._streams.get(piece.stream) in (None, State.ENDED_THERE):
            return
        if piece.data:
            events.append(Data(piece.stream, piece.data))
        if piece.fin:
            events += self._ended(piece.stream)

    def _ended(self, stream: int) -> list[Event]:
        state = self._streams.get(stream)
        if state not in _AFTER_THEIR_END:
            return []
        self._become(stream, _AFTER_THEIR_END[state])
        return [Ended(stream)]

    def _become(self, stream: int, state: State | None) -> None:
        if state is None:
            del self._streams[stream]
        else:
            self._streams[stream] = state

    def _opened(self, frame: Control) -> list[Event]:
        headers = self._header_reader.read(frame.body[10:])
        stream = frame.first
        if not stream or stream % 2 == self._ours or stream in self._streams:
            raise ProtocolError(f"stream {stream} opened by the wrong side, or twice")
        if len(self._streams) >= MAX_STREAMS:
            return [Answer(frames.reset(stream, ResetStatus.REFUSED_STREAM))]
        self._last_opened = max(self._last_opened, stream)
        self._streams[stream] = State.ENDED_HERE if frame.flags & frames.FLAG_UNIDIRECTIONAL else State.OPEN
        events: list[Event] = [Opened(stream, headers)]
        if not frame.flags & frames.FLAG_UNIDIRECTIONAL:
            events.append(Answer(frames.numbered(Type.SYN_REPLY, stream, self._header_writer.write({}))))
        return events + self._finned(frame)

    def _finned(self, frame: Control) -> list[Event]:
        return self._ended(frame.first) if frame.flags & frames.FLAG_FIN else []

    def _replied(self, frame: Control) -> list[Event]:
        return [Answered(frame.first), *self._more_headers(frame)]

    def _more_headers(self, frame: Control) -> list[Event]:
        self._header_reader.read(frame.body[4:])
        return self._finned(frame)

    def _reset(self, frame: Control) -> list[Event]:
        return [Reset(frame.first)] if self._streams.pop(frame.first, None) else []

    def _pinged(self, frame: Control) -> list[Event]:
        """Answer the peer's ping with the same frame. An answer to one of our pings has our parity and is
        ignored."""
        ours = frame.first % 2 == self._ours
        return [] if ours else [Answer(frames.numbered(Type.PING, frame.first))]

    def open(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        stream, self._next = self._next, self._next + 2
        self._streams[stream] = State.OPEN
        return stream, frames.syn_stream(stream, self._header_writer.write(headers))

    def data(self, stream: int, data: bytes) -> Chunks:
        if self._streams.get(stream) not in _AFTER_OUR_END or not data:
            return ()
        if len(data) <= frames.MAX_DATA:
            return frames.data_header(stream, len(data)), data
        first, rest = data[: frames.MAX_DATA], data[frames.MAX_DATA :]
        return frames.data_header(stream, len(first)), first, *self.data(stream, rest)

    def end(self, stream: int) -> bytes:
        state = self._streams.get(stream)
        if state not in _AFTER_OUR_END:
            return b""
        self._become(stream, _AFTER_OUR_END[state])
        return frames.data_header(stream, 0, fin=True)

    def reset(self, stream: int) -> bytes:
        known = self._streams.pop(stream, None)
        return frames.reset(stream, ResetStatus.CANCEL) if known else b""

    def farewell(self) -> bytes:
        """GOAWAY and a reset of every open stream: spdystream closes a connection only when it has no stream
        left."""
        resets = b"".join(frames.reset(stream, ResetStatus.CANCEL) for stream in self._streams)
        self._streams.clear()
        return resets + frames.goaway(self._last_opened)
