"""The connections of the API server: limits on their number, their idle time, and the heads of requests.

An idle connection costs its client nothing, so each has a deadline: 32 s for a complete head and 90 s between
two requests, as in kube-apiserver. The number of connections from one address is limited; one too many is
closed before the TLS handshake, which is the most expensive part. When all connections together reach what
the descriptors allow, the one that has been open longest and has no request in progress is closed. A client
with a request, a watch or an exec is never closed. Clients on the same machine have no limit of their own,
and clients in the same process have no connection.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
import ssl
from collections import Counter, deque
from http import HTTPStatus
from typing import Any, cast

import msgspec
from aiohttp import hdrs, web
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import _ErrInfo
from yarl import _parse, _url

from podling.apiserver.http.http_request import (
    BODY_SECONDS,
    HttpRequest,
    certificate_of,
    not_http,
    said_by_go,
)
from podling.apiserver.request.request import Certificate
from podling.process.waits import hold_aside, long_work
from podling.streaming.driver import keep_alive

HEADER_LIMIT = (1 << 20) + 4096
"""Bytes of the request line and all headers together: what Go's server accepts."""
MOST_HEADERS = 1000
MOST_PIECES = 2048
"""Reads from the socket that one head may take: the parser copies what it has at each of them."""
FEW_PIECES = 2
"""Reads from the socket that an ordinary head takes at most."""
LONG = 64 * 1024
"""Bytes of a head that may hold a long URL, after which the URL caches are emptied."""
A_PIECE = 16 * 1024
"""Bytes of a body that came at once, after which a connection is read again only when it is its turn."""
BEGINNING = 2
"""Turns of the loop from the end of a head until its request is handled."""
ANSWERING = 4
"""Turns until the answer to a short request is written, if nothing is waited for."""
AHEAD = 32 * 1024
"""Bytes that the kernel may receive ahead of a connection (it doubles them): what a turn of the loop has to
decrypt of it at most. Streams and bodies that are passed on have `receive_much`."""
URL_CACHES = [
    held for module in (_parse, _url) for held in vars(module).values() if hasattr(held, "cache_clear")
]
"""The caches in which yarl keeps whole URLs. They are bounded by number, not by size, so a client could fill
them with long ones."""
TOO_LARGE = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
TOO_MANY = "Too many headers received"
"""aiohttp's message for a request with more than MOST_HEADERS."""
LONGEST_ANSWER = 30.0
"""Seconds that answers under way have when the server ends: as long as a webhook may take at most."""
LINGER = 0.5
"""Seconds a client that is still sending has to read its answer before the connection is closed, as in Go."""
RESERVED = 1024
"""Descriptors kept for the kubelet, the database and the logs."""
EACH = 2
"""Descriptors of one connection: a proxied connection has a second one, to its target."""
METHOD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) [/h*]")
KNOWN_METHODS = frozenset(map(str.encode, hdrs.METH_ALL))
ENDS_OF_METHODS = frozenset(method[at:] for method in KNOWN_METHODS for at in range(1, len(method)))
USUAL_METHODS = (b"GET ", b"POST ", b"PATCH ", b"PUT ", b"DELETE ")
UNSERVED_METHOD = b"UNLINK"
TURN = 0.005
"""Seconds between two pieces of heads that are long or come in many pieces, over all connections."""
PAUSE = 0.1
"""Seconds until the next `accept` after the machine ran out of descriptors or memory."""
SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger(__name__)


class Limits(msgspec.Struct, frozen=True):
    """The limits of all connections of an API server."""

    head_seconds: float = 32.0
    """From the first byte, or from the connection's start, to the end of a head."""
    idle_seconds: float = 90.0
    """Between two requests."""
    body_seconds: float = BODY_SECONDS
    connections: int = 10_000
    per_address: int = 1_000
    """Connections from one address that is not on this machine."""
    heads: int = 64 << 20
    """Bytes of incomplete heads, over all connections."""


LIMITS = Limits()


def limits_for(descriptors: int) -> Limits:
    """The limits for a process that may have so many open descriptors."""
    spare = descriptors - min(RESERVED, descriptors // 4)
    return Limits(connections=min(LIMITS.connections, spare // EACH))


class Connection(web.RequestHandler):
    """The connection of one client. Unlike aiohttp's handler, it bounds the head as a whole, and in time."""

    __slots__ = (
        "_alarm",
        "_all",
        "_body",
        "_head",
        "_is_over",
        "_pieces",
        "_turns",
        "_waits",
        "address",
        "certificate",
        "handshake",
        "is_ascii",
        "is_streaming",
    )

    def __init__(self, everyone: Connections, address: str, server: web.Server, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._all = everyone
        self._turns = long_work()
        self._head = 0
        """Bytes received of an incomplete head."""
        self._pieces = 0
        self._body: Any = None
        self._is_over = False
        self._waits = False
        """Whether it is read again only when its turn has come."""
        self._alarm: asyncio.TimerHandle | None = None
        self.address = address
        self.certificate: Certificate | None = None
        self.is_ascii = True
        """Whether all that has come is ASCII, as all headers are then."""
        self.is_streaming = False
        """Whether the answer in progress is one that may go on for long."""
        self.handshake: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.transport is None or (self._waiter is not None and not self._waiter.done())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.certificate = certificate_of(transport)
        self._alarm = self._loop.call_later(self._all.limits.head_seconds, self._late)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._head_is(0)
        self._rest()
        self._all.release(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        is_body = self._upgraded or (self._body is not None and not self._body.is_eof())
        requests = self._request_count
        size = self._head + len(data)
        self.is_ascii = self.is_ascii and data.isascii()
        if not is_body and not self._head and not data.startswith(USUAL_METHODS):
            data = readable(data, may_go_on=requests > 0)
        super().data_received(data)
        if self._request_count != requests:
            self._arrived(size)
            if size <= A_PIECE:
                self._turns.let_pass(BEGINNING)
                hold_aside(ANSWERING)
                return
        elif data and not is_body and not self._close:
            # Nothing at all is what aiohttp goes on with itself when a body has been read.
            self._head_is(self._head + len(data))
            self._pieces += 1
            heads = self._all
            if self._head > HEADER_LIMIT or self._pieces > MOST_PIECES or heads.heads > heads.limits.heads:
                self._refuse(TOO_LARGE)
            elif self._alarm is None:
                self._alarm = self._loop.call_later(heads.limits.head_seconds, self._late)
        is_head = bool(data) and not is_body and (size > LONG or self._pieces > FEW_PIECES)
        # To decrypt and keep a piece of a body takes up to 0.1 ms, and nobody may want it.
        is_long = is_head or (len(data) > A_PIECE and not self._upgraded)
        if is_long and not self._waits:
            self._waits = True
            self._pause_transport_reading()
            if is_head:
                self._all.take_turn(self)
            else:
                self._turns.call(self.go_on)

    def go_on(self) -> bool:
        """Read again, unless aiohttp itself has a reason not to."""
        self._waits = self._is_over
        if self._waits or self.transport is None or self._reading_paused or self._buffer_paused:
            return False
        self._resume_transport_reading()
        return True

    def leave_unread(self) -> None:
        """Read nothing more: the connection ends LINGER seconds after the answer, as in Go. A client that
        goes on sending costs nothing meanwhile."""
        self._is_over = self._waits = True
        self._pause_transport_reading()

    def _resume_transport_reading(self) -> None:
        # aiohttp asks for it, too, when somebody reads a body.
        if not self._waits:
            super()._resume_transport_reading()

    def stream(self) -> None:
        """The answer in progress may go on for long: whoever waits for whole answers does not wait for it."""
        self.is_streaming = True
        waiter, self._handler_waiter = self._handler_waiter, None
        if waiter is not None:
            waiter.set_result(None)

    async def answered(self) -> None:
        """Returns once the request in progress, if there is one, has been answered, or streams."""
        if not self._request_in_progress or self.is_streaming:
            return
        # aiohttp tells it, as it does for its own shutdown, during which it would read no body any more.
        self._handler_waiter = self._loop.create_future()
        try:
            await self._handler_waiter
        finally:
            self._handler_waiter = None

    def end(self) -> None:
        if self.transport is None and self.handshake is not None:
            self.handshake.cancel()
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer malformed HTTP in Go's words; any other error is podling's own fault."""
        answer = super().handle_error(request, status, exc, message)
        is_too_large = isinstance(exc, LineTooLong) or message == TOO_MANY
        if not (is_too_large or isinstance(exc, HttpProcessingError)):
            return answer
        cast(HttpRequest, request).answer_in_11()
        return not_http(TOO_LARGE) if is_too_large else not_http()

    def _arrived(self, size: int) -> None:
        """A complete head of at most `size` bytes was received."""
        if self._head:
            self._head_is(0)
            self._pieces = 0
        self._rest()
        message, self._body = self._messages[-1]
        if size > LONG:
            for cache in URL_CACHES:
                cache.cache_clear()
        if (
            size > HEADER_LIMIT
            and isinstance(message, RawRequestMessage)
            and head_size(message) > HEADER_LIMIT
        ):
            error = LineTooLong(message.method, HEADER_LIMIT)
            self._messages[-1] = (_ErrInfo(TOO_LARGE, error, ""), EMPTY_PAYLOAD)

    def _head_is(self, size: int) -> None:
        self._all.heads += size - self._head
        self._head = size

    def _late(self) -> None:
        self._alarm = None
        if self._head:
            self._refuse(HTTPStatus.BAD_REQUEST)
        elif self.idle:
            self.force_close()

    def _rest(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Send `status`, unless an answer is in progress, and close the connection LINGER seconds later."""
        if self.transport is not None and not self._messages and self.idle:
            self.transport.write(said_by_go(status))
        self._close = True
        self._head_is(0)
        self._rest()
        self._loop.call_later(LINGER, self.force_close)


def readable(data: bytes, *, may_go_on: bool = False) -> bytes:
    """The beginning of a head, with a method that the parser refuses to know in place of one that it knows
    and nobody serves: that the method is not allowed is what only the path can tell. `may_go_on`: this may
    be the end of a method whose beginning came together with the request before."""
    found = METHOD.match(data)
    if found is None or found[1] in KNOWN_METHODS or (may_go_on and found[1] in ENDS_OF_METHODS):
        return data
    return UNSERVED_METHOD + data[found.end(1) :]


def head_size(message: RawRequestMessage) -> int:
    return len(message.path) + sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


class Connections:
    """All connections of an API server, on all addresses it listens on. `refuses`: as the server ends, it
    listens while answers are under way, to send whoever comes meanwhile to another server."""

    def __init__(self, limits: Limits = LIMITS, *, refuses: bool = False) -> None:
        self.limits = limits
        self.refuses = refuses
        self.is_ending = False
        self.heads = 0
        self._accepting: dict[socket.socket, asyncio.Task[None]] = {}
        self._open: dict[Connection, None] = {}
        """Oldest first."""
        self._of: Counter[str] = Counter()
        self._room = asyncio.Event()
        self._taking_turns: deque[Connection] = deque()

    def listen(self, listener: socket.socket, accepting: asyncio.Task[None]) -> None:
        """`accepting` runs `accept` for `listener`; both are ended by `drain`."""
        self._accepting[listener] = accepting

    async def drain(self) -> None:
        """Take no new connections, end those without a request, and return when what was asked has been
        answered, after LONGEST_ANSWER seconds at most. Streams go on."""
        if self.is_ending:
            return
        self.is_ending = True
        if not self.refuses:
            self._stop_listening()
            for connection in tuple(self._open):
                # A handshake ends with its `accept`.
                if connection.idle and connection.handshake is None:
                    connection.end()
        for _ in range(BEGINNING):
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(LONGEST_ANSWER), asyncio.TaskGroup() as answers:
                for connection in self._open:
                    answers.create_task(connection.answered())
        except TimeoutError:
            log.warning("the server ends although requests were not answered for %g seconds", LONGEST_ANSWER)
        self._stop_listening()

    async def accept(
        self, listener: socket.socket, tls: ssl.SSLContext | None, server: web.Server, **options: Any
    ) -> None:
        """Accept connections until cancelled. Open ones stay open: `web.Server.shutdown` closes them."""
        loop = asyncio.get_running_loop()
        own = listener.getsockname()[0]
        async with asyncio.TaskGroup() as handshakes:
            while True:
                while len(self._open) >= self.limits.connections:
                    idle = next((connection for connection in self._open if connection.idle), None)
                    if idle is not None:
                        self.release(idle)
                        idle.end()
                        break
                    self._room.clear()
                    await self._room.wait()
                try:
                    client, peer = await loop.sock_accept(listener)
                except OSError as error:
                    if error.errno in SCARCE:
                        log.warning("no connection can be taken: %s", error)
                        await asyncio.sleep(PAUSE)
                    continue
                address = peer[0]
                if self._of[address] >= self.limits.per_address and not is_here(address, own):
                    client.close()
                    continue
                connection = Connection(self, address, server, **options)
                self._open[connection] = None
                self._of[address] += 1
                connection.handshake = handshakes.create_task(self._greet(connection, client, tls))
                # `sock_accept` waits for nothing while clients queue, and hundreds of handshakes at once
                # would hold the loop.
                await asyncio.sleep(0)

    def release(self, connection: Connection) -> None:
        if self._open.pop(connection, False) is None:
            self._of[connection.address] -= 1
            if not self._of[connection.address]:
                del self._of[connection.address]
            self._room.set()

    def _stop_listening(self) -> None:
        for listener, accepting in self._accepting.items():
            accepting.cancel()
            listener.close()

    def take_turn(self, connection: Connection) -> None:
        """Let a connection that has sent a piece of a long head, or one of many pieces, go on when it is its
        turn.

        To decrypt and parse a piece of a long head takes 1 to 4 ms, so without turns a few clients would fill
        the loop; so would hundreds that send a byte each at the same time.
        """
        self._taking_turns.append(connection)
        if len(self._taking_turns) == 1:
            asyncio.get_running_loop().call_later(TURN, self._next_turn)

    def _next_turn(self) -> None:
        self._taking_turns.popleft().go_on()
        if self._taking_turns:
            asyncio.get_running_loop().call_later(TURN, self._next_turn)

    async def _greet(self, connection: Connection, client: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Do the TLS handshake, then hand the socket to the connection."""
        loop, patience = asyncio.get_running_loop(), self.limits.head_seconds if tls else None
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, AHEAD)
        keep_alive(client)
        try:
            await loop.connect_accepted_socket(
                lambda: connection, client, ssl=tls, ssl_handshake_timeout=patience
            )
        except (OSError, ssl.SSLError):
            # The client's own affair: it went, took too long, or is not whom it says.
            pass
        finally:
            connection.handshake = None
            if connection.transport is None:
                self.release(connection)


def is_here(address: str, own: str) -> bool:
    """Whether a client is on this machine: its address is a loopback address, or the one it connected to."""
    return address == own or address == "::1" or address.startswith("127.")
