"""Kubernetes' channel subprotocols, where each message begins with the number of its channel: `ChannelWire`
for remote commands, `PortWire` for port-forward.

All channels are open from the start, as if the peer had opened a SPDY stream of that `streamtype`. Only v5
has a half close: a message on channel 255 that names the channel. In the base64 subprotocols the number is a
digit and the rest is base64 text. Messages for channels that this side only writes, or that do not exist, are
ignored, as in Kubernetes.

A port-forward has two channels for each port, 2i for data and 2i+1 for errors. The server's first message on
each is the port, as two bytes, least significant first. There is one connection for each port and no half
close: the port's connection lasts as long as the WebSocket.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from podling.streaming.websocket.frames import Piece, WebSocketCodec
from podling.streaming.wire import Answer, Chunks, Data, Ended, Event, Opened, ProtocolError

STREAM_TYPES = ("stdin", "stdout", "stderr", "error", "resize")
PORT_SUBPROTOCOLS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")
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
                continue
            piece = event.data
            if self._protocol.text:
                self._text += piece
                if len(self._text) > MAX_TEXT:
                    raise ProtocolError(f"base64 message of more than {MAX_TEXT} characters")
                if not event.last:
                    continue
                text, self._text = bytes(self._text), bytearray()
                self._channel = text[0] - ord("0") if text else -1
                try:
                    piece = base64.b64decode(text[1:], validate=True)
                except binascii.Error as error:
                    raise ProtocolError(f"base64 message: {error}") from error
            else:
                if event.first:
                    self._channel = -1
                if self._channel < 0 and piece:
                    self._channel, piece = piece[0], piece[1:]
            if piece:
                events += self._arrived(self._channel, piece)
        return events

    def _arrived(self, channel: int, data: bytes) -> list[Event]:
        closes = channel == CLOSE and self._protocol.half_close
        subject = data[0] if closes else channel
        if subject not in self._readable or subject in self._ended:
            return []
        if not closes:
            return [Data(channel, data)]
        self._ended.add(subject)
        return [Ended(subject)]

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


class PortWire(ChannelWire):
    """The server's side. A data stream carries the same headers as one opened over SPDY."""

    def __init__(self, subprotocol: str, ports: Sequence[int]) -> None:
        super().__init__(SUBPROTOCOLS[subprotocol], client=False, readable=range(0, 2 * len(ports), 2))
        self._ports = ports

    def start(self) -> list[Event]:
        events: list[Event] = []
        for i, port in enumerate(self._ports):
            for channel, kind in ((2 * i + 1, "error"), (2 * i, "data")):
                headers = {"streamtype": kind, "port": str(port), "requestid": str(i)}
                events.append(Opened(channel, headers))
                events.append(Answer(b"".join(self._message(channel, port.to_bytes(2, "little")))))
        return events
