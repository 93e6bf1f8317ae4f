"""`ChannelWire`: Kubernetes' remote-command subprotocols, where each message begins with the number of its
channel.

All channels are open from the start, as if the peer had opened a SPDY stream of that `streamtype`. Only v5
has a half close: a message on channel 255 that names the channel. In the base64 subprotocols the number is a
digit and the rest is base64 text. Messages for channels that this side only writes, or that do not exist, are
ignored, as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import NamedTuple

from podling.streaming.websocket.frames import Piece, WebSocketCodec
from podling.streaming.wire import Answer, Chunks, Data, Ended, Event, Opened, ProtocolError

STREAM_TYPES = ("stdin", "stdout", "stderr", "error", "resize")
TO_SERVER = frozenset({0, 4})
TO_CLIENT = frozenset({1, 2, 3})
CLOSE = 255
MAX_TEXT = 1024 * 1024
"""Characters of one base64 message, which must be whole to be decoded."""


class Subprotocol(NamedTuple):
    """A subprotocol. `status` is the format of the error channel: JSON Status, or plain text and nothing on
    success."""

    name: str
    text: bool = False
    half_close: bool = False
    status: bool = True


SUBPROTOCOLS = {
    p.name: p
    for p in (
        Subprotocol("v5.channel.k8s.io", half_close=True),
        Subprotocol("v4.channel.k8s.io"),
        Subprotocol("v4.base64.channel.k8s.io", text=True),
        Subprotocol("channel.k8s.io", status=False),
        Subprotocol("base64.channel.k8s.io", text=True, status=False),
        Subprotocol("", status=False),
    )
}


class ChannelWire:
    """`greeting` names the stream on which a server sends an empty message at once; `readable` are the
    channels to read, if they are not those of remote commands."""

    def __init__(
        self,
        subprotocol: Subprotocol,
        *,
        client: bool,
        greeting: str = "",
        readable: Collection[int] | None = None,
    ) -> None:
        self._codec = WebSocketCodec(client=client)
        self._protocol = subprotocol
        self._client = client
        self._readable = readable or (TO_CLIENT if client else TO_SERVER)
        self._greeting = greeting
        self._channel = -1
        self._text = bytearray()
        self._ended: set[int] = set()

    def start(self) -> list[Event]:
        events: list[Event] = [Opened(i, {"streamtype": name}) for i, name in enumerate(STREAM_TYPES)]
        if self._greeting:
            events.append(Answer(b"".join(self._message(STREAM_TYPES.index(self._greeting), b""))))
        return events

    def receive(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for event in self._codec.receive(data):
            if not isinstance(event, Piece):
                events.append(event)
            elif self._protocol.text:
                events += self._encoded(event)
            else:
                events += self._piece(event)
        return events

    def _encoded(self, piece: Piece) -> list[Event]:
        self._text += piece.data
        if len(self._text) > MAX_TEXT:
            raise ProtocolError(f"base64 message of more than {MAX_TEXT} characters")
        if not piece.last:
            return []
        text, self._text = bytes(self._text), bytearray()
        try:
            return (
                self._arrived(text[0] - ord("0"), base64.b64decode(text[1:], validate=True)) if text else []
            )
        except binascii.Error as error:
            raise ProtocolError(f"base64 message: {error}") from error

    def _piece(self, piece: Piece) -> list[Event]:
        data = piece.data
        if piece.first:
            self._channel = -1
        if self._channel < 0 and data:
            self._channel, data = data[0], data[1:]
        return self._arrived(self._channel, data) if data else []

    def _arrived(self, channel: int, data: bytes) -> list[Event]:
        if channel == CLOSE and self._protocol.half_close:
            return self._closed(data[0]) if data else []
        if channel not in self._readable or channel in self._ended or not data:
            return []
        return [Data(channel, data)]

    def _closed(self, channel: int) -> list[Event]:
        if channel not in self._readable or channel in self._ended:
            return []
        self._ended.add(channel)
        return [Ended(channel)]

    def _message(self, channel: int, data: bytes) -> Chunks:
        if self._protocol.text:
            return self._codec.message(b"%c" % (ord("0") + channel), base64.b64encode(data), text=True)
        return self._codec.message(bytes((channel,)), data)

    def open(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        return STREAM_TYPES.index(headers["streamtype"]), b""

    def data(self, stream: int, data: bytes) -> Chunks:
        return self._message(stream, data) if data else ()

    def end(self, stream: int) -> bytes:
        if not (self._client and self._protocol.half_close):
            return b""
        return b"".join(self._message(CLOSE, bytes((stream,))))

    def reset(self, stream: int) -> bytes:
        return b""

    def farewell(self) -> bytes:
        return self._codec.close()
