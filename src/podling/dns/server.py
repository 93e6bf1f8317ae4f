"""Cluster DNS on sockets: datagrams and streams (RFC 7766), on the loop that serves everything else.

A turn of the loop answers `A_TURN` queries of a socket at most; the rest wait in the kernel, whose buffer is
bounded. A stream is read no further while its client does not read, or has `MOST_OPEN` questions elsewhere.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from podling.dns.answers import Answer, limit
from podling.dns.responder import Responder, Unanswered
from podling.dns.wire import LONGEST_MESSAGE, RCODE, Query
from podling.process.histogram import Histogram

A_TURN = 32
"""Queries, of about 15 µs with their system calls."""
LONGEST_QUERY = 4096
"""Bytes of a datagram that are read."""
IDLE = 10.0
"""Seconds after which a stream that asks nothing is closed."""
MOST_STREAMS = 256
"""At once; further ones are closed."""
MOST_OPEN = 32
"""Questions of a stream that are asked elsewhere at a time."""
PORT = 53
ANY = 10
"""How many ports of the kernel's choice are tried: it chooses one for TCP that UDP may have taken."""
BUCKETS = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01)
"""Seconds; CoreDNS' first bucket of 0.25 ms would have all."""
IP_FREEBIND, IPV6_FREEBIND = 15, 78

Reply = Callable[[Answer], None]
Elsewhere = Callable[[Unanswered, str, Reply], None]
"""Asks elsewhere for the client at an address, and calls back once there is an answer, perhaps at once."""


class Sockets:
    """UDP and TCP sockets at an address and port. The address may be one that this machine gets later, such
    as its pods' gateway. Raises OSError."""

    def __init__(self, address: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        level, freebind = socket.IPPROTO_IP, IP_FREEBIND
        if family == socket.AF_INET6:
            level, freebind = socket.IPPROTO_IPV6, IPV6_FREEBIND
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        self.tcp = socket.socket(family, socket.SOCK_STREAM)
        try:
            for one in (self.tcp, self.udp):
                one.setblocking(False)
                one.setsockopt(level, freebind, 1)
            self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.tcp.bind((address, port))
            self.port: int = self.tcp.getsockname()[1]
            self.udp.bind((address, self.port))
            self.tcp.listen()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        self.udp.close()
        self.tcp.close()


def sockets_at(address: str, *ports: int) -> Sockets:
    """At the first of `ports` that is free; 0 is any. Raises OSError."""
    *rest, last = ports
    for port in (*rest, *([0] * ANY if last == 0 else [])):
        try:
            return Sockets(address, port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    return Sockets(address, last)


class Server:
    """`elsewhere` is asked what no zone of ours knows."""

    def __init__(self, responder: Responder, elsewhere: Elsewhere) -> None:
        self._responder = responder
        self._elsewhere = elsewhere
        self._streams: set[_Stream] = set()
        self.rcodes = [0] * 16
        """Replies by code."""
        self.seconds = Histogram(BUCKETS)
        """For a datagram's reply at once; those of one turn of the loop are taken to have been alike."""

    @contextmanager
    def answering(self, sockets: Sockets) -> Iterator[None]:
        """Answer datagrams at `sockets` while the block runs. They are closed at its end."""
        loop = asyncio.get_running_loop()
        with ExitStack() as at_end:
            at_end.callback(sockets.close)
            loop.add_reader(sockets.udp, self._datagrams, sockets.udp)
            at_end.callback(loop.remove_reader, sockets.udp)
            yield

    async def run(self, sockets: Sockets) -> None:
        """Answer at `sockets` for ever."""
        loop = asyncio.get_running_loop()
        with self.answering(sockets):
            server = await loop.create_server(lambda: _Stream(self._streams, self._answer), sock=sockets.tcp)
            try:
                async with server:
                    await asyncio.Event().wait()
            finally:
                for stream in tuple(self._streams):
                    stream.close()

    def _datagrams(self, sock: socket.socket) -> None:
        reply, rcodes = self._responder.reply, self.rcodes
        began, count = time.perf_counter(), 0
        for _ in range(A_TURN):
            try:
                message, sender = sock.recvfrom(LONGEST_QUERY)
            except OSError:
                # Nothing more, or a client's port that could not be reached.
                break
            try:
                said = reply(message, sender[0])
            except Unanswered as asked:
                room = limit(asked.query, is_stream=False)
                done = partial(self._send_answer, sock, sender, asked.query, room)
                self._elsewhere(asked, sender[0], done)
                continue
            if said is not None:
                rcodes[said[3] & RCODE] += 1
                count += 1
                _send(sock, said, sender)
        if count:
            self.seconds.observe_alike((time.perf_counter() - began) / count, count)

    def _send_answer(
        self, sock: socket.socket, client: tuple[Any, ...], query: Query, room: int, answer: Answer
    ) -> None:
        self.rcodes[answer.rcode] += 1
        if sock.fileno() != -1:
            _send(sock, answer.reply(query, room), client)

    def _answer(self, message: bytes, client: str, send: Callable[[bytes | None], None]) -> None:
        """To a stream; None is sent when there is no reply."""

        def answered(answer: Answer) -> None:
            self.rcodes[answer.rcode] += 1
            send(answer.reply(query, LONGEST_MESSAGE))

        try:
            said = self._responder.reply(message, client, is_stream=True)
        except Unanswered as asked:
            query = asked.query
            self._elsewhere(asked, client, answered)
            return
        if said is not None:
            self.rcodes[said[3] & RCODE] += 1
        send(said)


def _send(sock: socket.socket, message: bytes, client: tuple[Any, ...]) -> None:
    try:
        sock.sendto(message, client)
    except OSError:
        # The client asks again if it is still there.
        return


class _Stream(asyncio.Protocol):
    """A connection: messages after their lengths of two bytes."""

    def __init__(
        self,
        others: set[_Stream],
        answer: Callable[[bytes, str, Callable[[bytes | None], None]], None],
    ) -> None:
        self._others = others
        self._answer = answer
        self._received = bytearray()
        self._open = 0
        self._is_read, self._waits = True, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._client = str((transport.get_extra_info("peername") or ("",))[0])
        self._others.add(self)
        self._used = self._loop.time()
        self._timer = self._loop.call_later(IDLE, self._idle)
        if len(self._others) > MOST_STREAMS:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        self._timer.cancel()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._waits:
            self._take()

    def eof_received(self) -> bool:
        # Who has asked everything may still want the answers; the idle time ends it.
        return bool(self._open or self._received)

    def pause_writing(self) -> None:
        self._is_read = False
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_read = True
        self._go_on()

    def _take(self) -> None:
        self._waits = False
        received = self._received
        for _ in range(A_TURN):
            if len(received) < 2 or self._transport.is_closing():
                return
            length = int.from_bytes(received[:2], "big")
            if len(received) < 2 + length:
                return
            if not self._is_read or self._open >= MOST_OPEN:
                self._transport.pause_reading()
                return
            message = bytes(received[2 : 2 + length])
            del received[: 2 + length]
            self._used = self._loop.time()
            self._open += 1
            self._answer(message, self._client, self._send)
        self._waits = True
        self._transport.pause_reading()
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._transport.is_closing():
            return
        self._transport.resume_reading()
        self._take()

    def _send(self, message: bytes | None) -> None:
        self._open -= 1
        if self._transport.is_closing():
            return
        if message is None:
            self.close()
            return
        self._transport.write(len(message).to_bytes(2, "big") + message)
        if self._open == MOST_OPEN - 1 and not self._waits:
            self._waits = True
            self._loop.call_soon(self._go_on)

    def _idle(self) -> None:
        left = self._used + IDLE - self._loop.time()
        if left > 0 or self._open:
            self._timer = self._loop.call_later(max(left, 1.0), self._idle)
        else:
            self.close()
