"""The transport over HTTPS, for any Kubernetes API server: HTTP/1.1 on connections that are kept.

A request has a deadline. A connection whose peer does not even acknowledge for a minute is closed, so that a
watch on a server that vanished begins again.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from podling.client import first as before_loop
from podling.client.first import First
from podling.client.lines import Line, OfSocket, OfStreams
from podling.client.login import Login, Shown
from podling.client.route import PLAIN, Query, Wire, target
from podling.client.transport import JSON, Answer
from podling.process.early import is_in_loop, within
from podling.process.http_client import AnswerReader, Event, Head, request_head

if TYPE_CHECKING:
    import asyncio

    from podling.client.dial import Factory

DEADLINE = 60.0
"""Seconds for one exchange, as many as after which kube-apiserver gives up a request."""
LONGEST_IDLE = 60.0
"""Seconds an unused connection is kept: less than any API server keeps it, so that none is closed while a
request is on its way."""
LONGEST_UNASKED = 10.0
"""Seconds of a connection without a request: kube-apiserver closes it after 32."""
MOST_DIALLED = 16
"""Connections that are being made at a time. A burst of requests that each made its own would pay for more
handshakes than it needs connections: of 200 requests, 48 are enough."""
PIECE = 256 * 1024
MOST = 1024**3
"""Bytes of an answer that is kept as a whole: as many as a list of 300,000 pods."""
GZIP = 16 + zlib.MAX_WBITS
UNAUTHORIZED = 401


class Connection:
    """One connection, for one request after the other. `tls` is what it was made with."""

    def __init__(self, line: Line, tls: ssl.SSLContext) -> None:
        self.tls = tls
        self._line = line
        self._answer = AnswerReader()
        self._used = time.monotonic()

    def is_fresh(self) -> bool:
        """Whether the server still waits for a request."""
        return self._line.is_open() and time.monotonic() - self._used < LONGEST_IDLE

    async def send(self, head: bytes, body: bytes | None) -> None:
        """The request."""
        self._answer = AnswerReader()
        await self._line.send(head + body if body else head)

    async def head(self) -> Head:
        """Of the answer. Raises OSError when the server ends the connection or speaks no HTTP."""
        event = await self._receive()
        assert isinstance(event, Head)
        return event

    async def body(self, head: Head) -> AsyncGenerator[bytes, None]:
        """The body in pieces of any size, none of them empty."""
        is_packed = head.headers.get("Content-Encoding") == "gzip"
        unpacking = zlib.decompressobj(GZIP)
        while isinstance(rest := await self._receive(), bytes):
            if not is_packed:
                yield rest
                continue
            try:
                # A little that was sent may be very much.
                while piece := unpacking.decompress(rest, PIECE):
                    yield piece
                    rest = unpacking.unconsumed_tail
            except zlib.error as error:
                raise OSError(f"the answer is no gzip: {error}") from error

    async def whole(self, head: Head) -> bytes:
        """The whole body. Raises OSError, also for one of more than MOST bytes."""
        said = bytearray()
        async for piece in self.body(head):
            said += piece
            if len(said) > MOST:
                raise OSError(f"the answer has more than {MOST} bytes")
        return bytes(said)

    def is_kept(self) -> bool:
        """Whether the connection can have another request after this one."""
        self._used = time.monotonic()
        return self._answer.is_kept

    def close(self) -> None:
        """Nothing is on its way that would be worth a farewell."""
        self._line.close()

    async def closed(self) -> None:
        with suppress(OSError):
            await self._line.closed()

    async def _receive(self) -> Event:
        while (event := self._answer.next()) is None:
            data = await self._line.read(PIECE)
            if not (data or self._answer.has_begun):
                raise ConnectionResetError("the server ended the connection")
            self._answer.receive(data)
        return event


class Reserved(NamedTuple):
    """A connection on which nothing was asked yet."""

    transport: asyncio.Transport
    tls: ssl.SSLContext
    since: float

    def is_for(self, shown: Shown) -> bool:
        """Whether these credentials are its own, and the server still waits."""
        is_young = time.monotonic() - self.since < LONGEST_UNASKED
        return is_young and self.tls is shown.tls and not self.transport.is_closing()


class Waiting(NamedTuple):
    tls: ssl.SSLContext
    turn: asyncio.Future[Connection | None]
    """A connection, or None for the turn to make one."""


class HttpsTransport:
    """Keeps connections open between calls. A request answered 401 was not carried out, so it is sent once
    more if `login` has another credential. `deadline` is in seconds."""

    def __init__(
        self,
        server: str,
        login: Login,
        wire: Wire = PLAIN,
        *,
        deadline: float = DEADLINE,
        first: First | None = None,
    ) -> None:
        """`first` was sent before; who asks for the same gets its answer."""
        self.login = login
        self._server = server.rstrip("/")
        self._url = urlsplit(self._server)
        self._wire = wire
        self._deadline = deadline
        self._idle: list[Connection] = []
        self._dialling = 0
        self._waiting: deque[Waiting] = deque()
        """While MOST_DIALLED connections are being made: who gets the next one that is free, or its turn."""
        self._reserved: list[Reserved] = []
        self._first: tuple[str, Connection] | None = None
        if first is not None:
            self._first = first.target, Connection(OfSocket(first.connection, deadline), first.tls)

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        headers = [("Content-Type", content_type)] if body is not None else []
        target = self.target(path, query)

        async def exchange(shown: Shown) -> Answer:
            async with self._asked(shown, method, target, headers, body) as (connection, head):
                return head.status, head.headers, await connection.whole(head)

        try:
            async with within(self._deadline):
                shown = await self.login.present()
                answer = await exchange(shown)
                if answer[0] == UNAUTHORIZED and (other := await self.login.renew(shown)):
                    return await exchange(other)
                return answer
        except TimeoutError as error:
            raise OSError(f"{self._server} did not answer {method} {path} in time") from error

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        target = self.target(path, query)
        shown = await self.login.present()
        while True:
            async with self._asked(shown, "GET", target, [], None) as (connection, head):
                if head.status == 200:
                    async for piece in connection.body(head):
                        yield piece
                    return
                said = await connection.whole(head)
            from podling.model.errors import StatusError

            refused = StatusError.from_json(head.status, said)
            if head.status != UNAUTHORIZED or (other := await self.login.renew(shown)) is None:
                raise refused
            shown = other

    def target(self, path: str, query: Query) -> str:
        """What a request line names."""
        return target(self._url, path, query)

    def head(self, shown: Shown) -> list[tuple[str, str]]:
        """The headers of every request."""
        return self._wire.head(self._url, shown)

    async def reserve(self) -> None:
        """Connect for the next `connect`, as long as something else is waited for. What hinders is told to
        who connects."""
        import asyncio

        from podling.client.dial import dial

        with suppress(OSError):
            tls = (await self.login.present()).tls
            transport = await dial(self._wire.route(self._url), tls, asyncio.Protocol)
            self._reserved.append(Reserved(transport, tls, time.monotonic()))

    async def connect(self, shown: Shown, factory: Factory) -> asyncio.Transport:
        """A connection of its own, such as for an upgrade, whose protocol `factory` makes. Raises OSError."""
        while self._reserved:
            reserved = self._reserved.pop()
            if reserved.is_for(shown):
                protocol = factory()
                reserved.transport.set_protocol(protocol)
                protocol.connection_made(reserved.transport)
                return reserved.transport
            reserved.transport.abort()
        from podling.client.dial import dial

        try:
            return await dial(self._wire.route(self._url), shown.tls, factory)
        except OSError as error:
            raise OSError(f"{self._server}: {error}") from error

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for reserved in self._reserved:
            reserved.transport.abort()
        if self._first:
            # Nobody has waited for it.
            idle.append(self._first[1])
        for connection in idle:
            connection.close()
        for connection in idle:
            await connection.closed()

    @asynccontextmanager
    async def _asked(
        self, shown: Shown, method: str, target: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> AsyncGenerator[tuple[Connection, Head]]:
        """The head of the answer. The connection is kept when the answer was read to its end."""
        connection = None
        try:
            if self._first and (method, target) == ("GET", self._first[0]):
                (_, connection), self._first = self._first, None
            else:
                connection = await self._sent(shown, method, target, headers, body)
            yield connection, await connection.head()
            if connection.is_kept():
                self._free(connection)
                connection = None
        except OSError as error:
            raise OSError(f"{self._server}: {error}") from error
        finally:
            if connection is not None:
                connection.close()

    async def _sent(
        self, shown: Shown, method: str, target: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> Connection:
        """The connection on which the request is on its way."""
        connection = await self._connection(shown.tls)
        try:
            length = [("Content-Length", str(len(body)))] if body is not None else []
            said = [*self.head(shown), *self._wire.accepted(), *headers, *length]
            await connection.send(request_head(method, target, said), body)
        except BaseException:
            connection.close()
            raise
        return connection

    def _kept(self, tls: ssl.SSLContext) -> Connection | None:
        """One that is idle and can be used again."""
        while self._idle:
            kept = self._idle.pop()
            if kept.tls is tls and kept.is_fresh():
                return kept
            kept.close()
        return None

    def _free(self, connection: Connection) -> None:
        """For who waits longest: if whoever comes just then took it, those who wait would do so until
        their deadline."""
        if (first := self._first_waiting()) is not None and first.tls is connection.tls:
            self._waiting.popleft()
            first.turn.set_result(connection)
        else:
            self._idle.append(connection)

    def _dialled(self) -> None:
        """A connection was made, or could not be: whoever waits longest makes the next."""
        if (first := self._first_waiting()) is not None:
            self._waiting.popleft()
            first.turn.set_result(None)
        else:
            self._dialling -= 1

    def _first_waiting(self) -> Waiting | None:
        while self._waiting and self._waiting[0].turn.done():
            self._waiting.popleft()
        return self._waiting[0] if self._waiting else None

    async def _connection(self, tls: ssl.SSLContext) -> Connection:
        if self._first_waiting() is None and (kept := self._kept(tls)):
            return kept
        route = self._wire.route(self._url)
        if not is_in_loop():
            return Connection(OfSocket(before_loop.connect(route, tls), self._deadline), tls)
        import asyncio

        from podling.client.dial import dial

        loop = asyncio.get_running_loop()
        if self._dialling < MOST_DIALLED:
            self._dialling += 1
        elif (given := await self._turn(loop, tls)) is not None:
            return given
        try:
            reader = asyncio.StreamReader(PIECE, loop)
            protocol = asyncio.StreamReaderProtocol(reader)
            transport = await dial(route, tls, lambda: protocol)
        finally:
            self._dialled()
        return Connection(OfStreams(reader, asyncio.StreamWriter(transport, protocol, reader, loop)), tls)

    async def _turn(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext) -> Connection | None:
        """A connection that is free, or None when it is time to make one."""
        import asyncio

        turn: asyncio.Future[Connection | None] = loop.create_future()
        self._waiting.append(Waiting(tls, turn))
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It came too late.
                if (given := turn.result()) is not None:
                    self._free(given)
                else:
                    self._dialled()
            raise
