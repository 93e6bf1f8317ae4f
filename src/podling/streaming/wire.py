"""The interface of every stream protocol: bytes in, events out, many half-closable streams on one connection.

SPDY, Kubernetes' WebSocket channels, SPDY tunnelled in WebSocket and WebSocket port-forward implement it. A
wire does no I/O: `session.py` feeds it bytes and writes what it returns. The errors say which side failed:
ProtocolError is the peer's fault, Disconnected the network's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

Chunks = tuple[bytes, ...]
"""Bytes to write one after the other. They are not joined, so that a payload is not copied to get its
header.
"""


class ProtocolError(Exception):
    """The peer violated its protocol. The only error that a parser raises, whatever the bytes are."""


class Disconnected(ConnectionError):
    """The connection is lost: nothing more can be sent."""


class Opened(NamedTuple):
    """The peer opened a stream. Header names are lower case."""

    stream: int
    headers: Mapping[str, str]


class Answered(NamedTuple):
    """The peer has accepted a stream that was opened here."""

    stream: int


class Data(NamedTuple):
    stream: int
    data: bytes


class Ended(NamedTuple):
    """The peer will send nothing more on this stream (half close)."""

    stream: int


class Reset(NamedTuple):
    """The peer closed this stream both ways. What it sent before is still valid, but this is no end of
    input."""

    stream: int


class Answer(NamedTuple):
    """Bytes to send to the peer at once, such as the reply to a ping."""

    data: bytes


class Farewell(NamedTuple):
    """The peer opens no more streams. With `final` it sends nothing more at all and waits for the close."""

    final: bool


Event = Opened | Answered | Data | Ended | Reset | Answer | Farewell


class Wire(Protocol):
    """One side of one connection."""

    def start(self) -> list[Event]:
        """The events before the first byte (streams that are open from the start) and what this side sends
        first."""
        ...

    def receive(self, data: bytes) -> list[Event]:
        """The events in `data`. Raises ProtocolError; then only `farewell` may still be called."""
        ...

    def open(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The id of a new stream, and the bytes that announce it."""
        ...

    def data(self, stream: int, data: bytes) -> Chunks: ...

    def end(self, stream: int) -> bytes:
        """Half close; nothing if the protocol has no word for it."""
        ...

    def reset(self, stream: int) -> bytes: ...

    def farewell(self) -> bytes: ...
