"""`WebSocketCodec`: RFC 6455, with messages in pieces as they arrive.

wsproto parses and masks. A server's frames, which are never masked, get only their heads from here, so that
the payload is not copied. Pings and closes are answered and not shown.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from podling.streaming.wire import Answer, Chunks, Farewell, ProtocolError

if TYPE_CHECKING:
    from wsproto.frame_protocol import Frame

_FIN = 0x80
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Piece(NamedTuple):
    """Some bytes of a message (text as UTF-8); `first` is set on the first piece of a message, `last` on its
    last."""

    data: bytes
    first: bool
    last: bool


def accept_key(key: str) -> str:
    """Sec-WebSocket-Accept for a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


class WebSocketCodec:
    """One side of a WebSocket. Raises ProtocolError for what RFC 6455 does not allow."""

    def __init__(self, *, client: bool) -> None:
        # A server starts 8 ms sooner, and its first WebSocket is as much later.
        from wsproto import frame_protocol

        self._protocol = frame_protocol
        self._client = client
        self._frames = frame_protocol.FrameProtocol(client, [])
        self._between_messages = True
        self._said_goodbye = False

    def receive(self, data: bytes) -> list[Piece | Answer | Farewell]:
        self._frames.receive_bytes(data)
        events: list[Piece | Answer | Farewell] = []
        try:
            for frame in self._frames.received_frames():
                events += self._event(frame)
        except self._protocol.ParseFailed as error:
            raise ProtocolError(str(error)) from error
        return events

    def _event(self, frame: Frame) -> list[Piece | Answer | Farewell]:
        payload = frame.payload
        if frame.opcode is self._protocol.Opcode.PING and isinstance(payload, bytes):
            return [Answer(bytes(self._frames.pong(payload)))]
        if frame.opcode is self._protocol.Opcode.CLOSE:
            return [Answer(self.close()), Farewell(final=True)]
        if frame.opcode is self._protocol.Opcode.PONG or isinstance(payload, tuple):
            return []
        first, self._between_messages = self._between_messages, frame.message_finished
        return [
            Piece(payload.encode() if isinstance(payload, str) else payload, first, frame.message_finished)
        ]

    def message(self, *chunks: bytes, text: bool = False) -> Chunks:
        if self._client:
            whole = b"".join(chunks)
            return (bytes(self._frames.send_data(whole.decode() if text else whole, fin=True)),)
        opcode = self._protocol.Opcode.TEXT if text else self._protocol.Opcode.BINARY
        return _head(opcode, sum(map(len, chunks))) + chunks[0], *chunks[1:]

    def close(self) -> bytes:
        """The close frame, once."""
        if self._said_goodbye:
            return b""
        self._said_goodbye = True
        return bytes(self._frames.close(self._protocol.CloseReason.NORMAL_CLOSURE))


def _head(opcode: int, length: int) -> bytes:
    if length < 126:
        return bytes((_FIN | opcode, length))
    if length < 1 << 16:
        return bytes((_FIN | opcode, 126)) + length.to_bytes(2, "big")
    return bytes((_FIN | opcode, 127)) + length.to_bytes(8, "big")
