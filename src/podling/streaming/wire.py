"""The promise every stream protocol keeps: bytes in, events out, many half-closable streams on one
connection.

SPDY, Kubernetes' WebSocket channels, SPDY tunnelled in WebSocket and WebSocket port-forward differ only
behind this promise. A wire does no I/O: `session.py` feeds it and writes what it returns.

What can go wrong with a stream, and whose fault it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class ProtocolError(Exception):
    """The peer said something its protocol does not allow. The only error a codec raises, whatever the
    bytes.
    """


class Disconnected(ConnectionError):
    """The connection is gone; nothing more can be said on it."""


Chunks = tuple[bytes, ...]
"""Bytes to write one after the other, unjoined so that a payload is not copied to get its header."""


class Opened(NamedTuple):
    """The peer opened a stream. Header names are lower case."""

    stream: int
    headers: Mapping[str, str]


class Answered(NamedTuple):
    """The peer has taken a stream that was opened here."""

    stream: int


class Data(NamedTuple):
    stream: int
    data: bytes


class Ended(NamedTuple):
    """The peer will send nothing more on this stream (half close)."""

    stream: int


class Reset(NamedTuple):
    """The peer dropped this stream, both ways. What it sent before still counts; it is no end of input."""

    stream: int


class Answer(NamedTuple):
    """Bytes the protocol owes the peer at once, such as the reply to a ping."""

    data: bytes


class Farewell(NamedTuple):
    """The peer opens no more streams; with `final`, it says nothing more at all and waits for the close."""

    final: bool


Event = Opened | Answered | Data | Ended | Reset | Answer | Farewell


class Wire(Protocol):
    """One side of one connection."""

    def start(self) -> list[Event]:
        """What holds before a byte has arrived: streams open from the start, and what this side says
        first.
        """
        ...

    def receive(self, data: bytes) -> list[Event]:
        """Raises ProtocolError; then nothing more may be asked of this wire but `farewell`."""
        ...

    def open(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """A new stream's id, and the bytes that announce it."""
        ...

    def data(self, stream: int, data: bytes) -> Chunks: ...

    def end(self, stream: int) -> bytes:
        """Half close; nothing if the protocol has no word for it."""
        ...

    def reset(self, stream: int) -> bytes: ...

    def farewell(self) -> bytes: ...
