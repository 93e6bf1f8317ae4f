"""`TunnelWire`: SPDY/3.1 tunnelled in WebSocket (`SPDY/3.1+portforward.k8s.io`). The payload of the binary
messages, concatenated, is SPDY.
"""

from __future__ import annotations

from collections.abc import Mapping

from podling.streaming.spdy.connection import SpdyWire
from podling.streaming.websocket.frames import Piece, WebSocketCodec
from podling.streaming.wire import Answer, Chunks, Event

SUBPROTOCOL = "SPDY/3.1+portforward.k8s.io"


class TunnelWire:
    """A wire whose frames are SPDY within WebSocket messages."""

    def __init__(self, *, client: bool) -> None:
        self._codec = WebSocketCodec(client=client)
        self._spdy = SpdyWire(client=client)

    def start(self) -> list[Event]:
        return []

    def receive(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for event in self._codec.receive(data):
            if isinstance(event, Piece):
                events += map(self._outward, self._spdy.receive(event.data))
            else:
                events.append(event)
        return events

    def _outward(self, event: Event) -> Event:
        return Answer(self._framed(event.data)) if isinstance(event, Answer) else event

    def _framed(self, data: bytes) -> bytes:
        return b"".join(self._codec.message(data)) if data else b""

    def open(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        stream, announced = self._spdy.open(headers)
        return stream, self._framed(announced)

    def data(self, stream: int, data: bytes) -> Chunks:
        chunks = self._spdy.data(stream, data)
        return self._codec.message(*chunks) if chunks else ()

    def end(self, stream: int) -> bytes:
        return self._framed(self._spdy.end(stream))

    def reset(self, stream: int) -> bytes:
        return self._framed(self._spdy.reset(stream))

    def farewell(self) -> bytes:
        return self._framed(self._spdy.farewell()) + self._codec.close()
