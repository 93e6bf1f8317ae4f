"""`Session`, a connection of many streams: it drives a socket with a `Wire`, and `Stream`s are read and
written.

All buffers are bounded. Received bytes that nobody has read are limited for the whole connection; above the
limit the socket is not read, which the peer feels as TCP back-pressure. A write waits while the peer is slow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from podling.streaming.driver import Driver
from podling.streaming.wire import (
    Answer,
    Answered,
    Chunks,
    Data,
    Disconnected,
    Ended,
    Event,
    Farewell,
    Opened,
    ProtocolError,
    Reset,
    Wire,
)

UNREAD_HIGH = 256 * 1024
UNREAD_LOW = 64 * 1024


class Stream:
    """One half-closable stream. `ended` says that the peer closed its half: end of input, not a lost
    connection."""

    def __init__(self, session: Session, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        self.ended = False
        self._session = session
        self._chunks: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._over = False
        self._ended_here = False
        self._ignored = False

    @property
    def done(self) -> bool:
        """Whether both sides have closed their halves."""
        return self._over and self._ended_here

    async def read(self) -> bytes:
        """Returns the bytes received, waiting for some; empty when the stream has ended."""
        while not self._chunks:
            if self._over:
                return b""
            self._news.clear()
            await self._news.wait()
        data = self._chunks.popleft() if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._session.was_read(len(data))
        return data

    async def write(self, data: bytes) -> None:
        """Raises Disconnected."""
        await self._session.send(self._session.wire.data(self.number, data))

    def end(self) -> None:
        """Half close: this side sends no more."""
        self._ended_here = True
        self._session.say(self._session.wire.end(self.number))
        self._session.forget_if_done(self)

    def reset(self) -> None:
        """Close the stream both ways at once."""
        self._session.say(self._session.wire.reset(self.number))
        self.ignore()
        self._ended_here = True
        self.over()
        self._session.forget_if_done(self)

    def ignore(self) -> None:
        """Drop what the peer sends from now on, so that unread bytes do not hold up the other streams."""
        self._ignored = True
        unread, self._chunks = sum(map(len, self._chunks)), deque()
        self._session.was_read(unread)

    def arrived(self, data: bytes) -> int:
        """Take received `data`; returns the number of bytes that wait for a reader because of it."""
        if self._ignored:
            return 0
        self._chunks.append(data)
        self._news.set()
        return len(data)

    def over(self, *, ended: bool = False) -> None:
        """The connection or the stream has ended: readers and writers are woken."""
        if not self._over:
            self._over, self.ended = True, ended
            self._news.set()


class Session(Driver):
    """Drives one socket with one wire. `fault` is the peer's protocol error, if one ended the connection."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self.wire = wire
        self.fault: ProtocolError | None = None
        self._streams: dict[int, Stream] = {}
        self._opened: deque[Stream] = deque()
        self._news = asyncio.Event()
        self._unread = 0
        self._reading = True
        self._deaf = False
        self._peer_leaves = False
        self._unanswered: set[int] = set()
        self._answers = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._handle(self.wire.start())

    def data_received(self, data: bytes) -> None:
        try:
            self._handle(self.wire.receive(data))
        except ProtocolError as fault:
            self.fault = self.fault or fault
            self._stop_listening()
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._all_over()

    def _stop_listening(self) -> None:
        if not self._deaf:
            self._deaf = True
            self.say(self.wire.farewell())
            self._all_over()

    def _all_over(self) -> None:
        self._unanswered.clear()
        self._answers.set()
        for stream in self._streams.values():
            stream.over()
        self._news.set()

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if self._deaf:
                self._overhear(event)
                continue
            match event:
                case Data(number, data):
                    if stream := self._streams.get(number):
                        self._unread += stream.arrived(data)
                case Answer(data):
                    self.say(data)
                case Answered(number):
                    self._was_answered(number)
                case Opened(number, headers):
                    self._streams[number] = stream = Stream(self, number, headers)
                    self._opened.append(stream)
                    self._news.set()
                case Ended(number):
                    if stream := self._streams.get(number):
                        stream.over(ended=True)
                        self.forget_if_done(stream)
                case Reset(number):
                    self._was_answered(number)
                    if stream := self._streams.get(number):
                        stream.over()
                        self._forget(stream)
                case Farewell(final):
                    self._peer_leaves = True
                    self._close_if_peer_left(final)
        if self._unread > UNREAD_HIGH and self._reading:
            self._reading = False
            self.hold_peer()

    def _overhear(self, event: Event) -> None:
        """After our farewell only the peer's farewell matters: then neither side has anything left to
        send."""
        if isinstance(event, Farewell):
            self.close()

    def was_read(self, count: int) -> None:
        self._unread -= count
        if not self._reading and self._unread <= UNREAD_LOW:
            self._reading = True
            self.release_peer()

    def forget_if_done(self, stream: Stream) -> None:
        if stream.done:
            self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        self._streams.pop(stream.number, None)
        self._close_if_peer_left(False)

    def _close_if_peer_left(self, final: bool) -> None:
        if self._peer_leaves and (final or not self._streams):
            self._stop_listening()
            self.close()

    async def accept(self) -> Stream | None:
        """The next stream the peer opens; None when it opens no more."""
        while not self._opened:
            if self.lost or self._deaf:
                return None
            self._news.clear()
            await self._news.wait()
        return self._opened.popleft()

    def open(self, headers: Mapping[str, str]) -> Stream:
        """A new stream with these headers. Where the protocol has all streams open from the start, the one
        with these headers."""
        return self.open_all(headers)[0]

    def open_all(self, *headers: Mapping[str, str]) -> list[Stream]:
        """New streams, announced in one write, so that a peer that waits for all of them is woken once."""
        opened, said = [], []
        for named in headers:
            number, announced = self.wire.open(named)
            opened.append(self._streams.setdefault(number, Stream(self, number, named)))
            if announced:
                said.append(announced)
                self._unanswered.add(number)
        self.say(b"".join(said))
        if self.lost or self._deaf:
            for stream in opened:
                stream.over()
        return opened

    def _was_answered(self, number: int) -> None:
        self._unanswered.discard(number)
        self._answers.set()

    async def answered(self) -> None:
        """Returns when the peer has accepted or refused every stream opened here, or is lost."""
        while self._unanswered and not self.lost:
            self._answers.clear()
            await self._answers.wait()

    async def send(self, chunks: Chunks) -> None:
        """Raises Disconnected."""
        if not self.usable:
            raise Disconnected("connection lost")
        if chunks:
            self.say_all(chunks)
            await self.room()

    async def finish(self) -> None:
        """Send the farewell, flush everything written, and close. All streams are over from now on."""
        self._stop_listening()
        self.release_peer()
        await self.flushed()
        await self.linger()
