"""Sockets: `Driver`, the base of every protocol here that owns one, `HangUpWatch`, TCP keepalive, and socket
pairs within this process.

A driver waits for room to write, pauses reading while the peer must wait, ends the connection in order, and
forwards the loss of the connection to the protocol (aiohttp's) it took the transport from.

A transport that does not read is not told of the end of its connection, so a client that flooded a
container's input and left would be kept for ever. `HangUpWatch` asks the kernel with epoll, which reports the
end whatever lies unread before it.

Keepalive finds a peer that vanished without closing. It asks as often as Go's servers and clients do (the
kernel's default is after two hours), because a shell or a follower of a quiet log may be silent for hours.
Both ends of a pair are driven as those of a TCP connection, so what works here works over the network, with
back-pressure and sudden ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import select
import socket
import sys
import termios
from asyncio.trsock import TransportSocket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from podling.streaming.wire import Disconnected

Factory = Callable[[], asyncio.BaseProtocol]
Connect = Callable[[Factory], Awaitable[asyncio.Transport]]
"""Connects a client's protocol to a server of this process."""

HELD = 1.0
"""Seconds a peer is paused before `HangUpWatch` begins: most are resumed at once."""
GRACE = 5.0
"""Seconds after a hang-up in which data the peer had sent may still be read."""
WRITE_HIGH = 256 * 1024
"""Bytes the transport may hold unsent before writers wait."""
MUCH = 1 << 22
"""Bytes; the kernel takes no more of it than `net.core.rmem_max`."""
FLUSH_SECONDS = 60.0
LINGER_SECONDS = 5.0
IDLE = 15
"""Seconds of silence before the first keepalive probe."""
INTERVAL = 15
QUESTIONS = 9
"""Unanswered probes after which the peer counts as lost."""


class HangUpWatch:
    """Watches a connection from its creation until `end`. `gone` is called once, if the peer hangs up and its
    data is not read for GRACE."""

    def __init__(self, transport: asyncio.BaseTransport, gone: Callable[[], None]) -> None:
        self._transport = transport
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._epoll: select.epoll | None = None
        self._timer = self._loop.call_later(HELD, self._watch)

    def end(self) -> None:
        self._timer.cancel()
        self._unwatch()

    def _watch(self) -> None:
        connection = self._transport.get_extra_info("socket")
        if connection is None or connection.fileno() < 0:
            return
        self._epoll = select.epoll(1)
        self._epoll.register(connection.fileno(), select.EPOLLRDHUP)
        self._loop.add_reader(self._epoll.fileno(), self._hung_up)

    def _unwatch(self) -> None:
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _hung_up(self) -> None:
        self._unwatch()
        self._timer = self._loop.call_later(GRACE, self._gone)


class Driver(asyncio.Protocol):
    """An asyncio protocol. Its transport comes from a listener, or is taken over from another protocol.

    With `serves_client`, data of a peer that has left is dropped: nobody waits for its effect. Of other
    peers, such as a runtime whose command has ended, the last bytes are still read.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._full = asyncio.Event()
        self._lost = asyncio.Event()
        self.serves_client = False
        self._held: HangUpWatch | None = None

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self.lost and not self._transport.is_closing()

    async def wait_lost(self) -> None:
        await self._lost.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._limit_unsent(WRITE_HIGH)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._room.set()
        self._full.set()
        self._end_watch()

    def pause_writing(self) -> None:
        self._room.clear()
        self._full.set()

    def resume_writing(self) -> None:
        self._room.set()
        self._full.clear()

    async def room(self) -> None:
        """Returns when there is room to write. Raises Disconnected."""
        await self._room.wait()
        if self.lost:
            raise Disconnected("connection lost")

    async def stalled(self, seconds: float) -> None:
        """Returns when the peer has taken none of the unsent bytes for `seconds`, or the connection is
        lost."""
        while not self.lost:
            await self._full.wait()
            waiting = self._untaken()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._room.wait()
                continue
            if self._untaken() >= waiting:
                return

    def _untaken(self) -> int:
        """Bytes written that have not reached the peer: those in the transport and those in the kernel."""
        if self._transport is None or not self.usable:
            return 0
        queued = fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return self._transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)

    def say(self, data: bytes) -> None:
        """Write at once; does nothing when the connection is closing."""
        if data and self._transport is not None and self.usable:
            self._transport.write(data)

    def say_all(self, chunks: Iterable[bytes]) -> None:
        if self._transport is not None and self.usable:
            self._transport.writelines(chunks)

    def hold_peer(self) -> None:
        """Stop reading, so that the peer's writes block. A client that leaves meanwhile is dropped."""
        if self._transport is not None and self.usable:
            self._transport.pause_reading()
            if self.serves_client and self._held is None:
                self._held = HangUpWatch(self._transport, self.drop)

    def release_peer(self) -> None:
        """Read again."""
        self._end_watch()
        if self._transport is not None and self.usable:
            self._transport.resume_reading()

    def _end_watch(self) -> None:
        if self._held is not None:
            self._held.end()
            self._held = None

    def close(self) -> None:
        """Close once everything written is sent."""
        if self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Abort the connection, as if the network had failed."""
        if self._transport is not None and not self.lost:
            self._transport.abort()

    def _limit_unsent(self, high: int) -> None:
        if self._transport is not None and self.usable:
            self._transport.set_write_buffer_limits(high)

    async def flushed(self) -> None:
        """Returns when nothing is left unsent; drops a peer that does not take it within FLUSH_SECONDS."""
        self._limit_unsent(0)
        await self._in_time(self._room, FLUSH_SECONDS)

    async def linger(self) -> None:
        """Wait for the peer to close first, at most LINGER_SECONDS: closing while it still sends would reset
        the connection, and the last bytes sent to it might be lost."""
        await self._in_time(self._lost, LINGER_SECONDS)

    async def gone(self) -> None:
        """Returns when a closing connection is closed; drops a peer that does not take the last bytes."""
        await self._in_time(self._lost, FLUSH_SECONDS)

    async def _in_time(self, event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            self.drop()


def keep_alive(connection: socket.socket | TransportSocket) -> None:
    """Enable keepalive. On a listener it holds for every connection it accepts."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, QUESTIONS)


def receive_much(connection: socket.socket | TransportSocket) -> None:
    """Let the kernel receive as much ahead as it lets anyone, for streams over long distances."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MUCH)


async def connect_within(server: Factory, client: Factory) -> asyncio.Transport:
    """Connect the two protocols by a socket pair; returns the client's transport."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    try:
        await loop.connect_accepted_socket(server, theirs)
    except BaseException:
        ours.close()
        theirs.close()
        raise
    transport, _ = await loop.create_unix_connection(client, sock=ours)
    return transport
