"""The HTTPS server: passes requests from sockets to the pipeline, and its answers back.

It uses aiohttp's low-level server, since the pipeline routes requests itself and an upgrade takes over the
whole connection. When a client disconnects, its handler is cancelled, which closes the stream it was sending.
A slow client blocks only its own handler; the stream's queue decides when the client is too slow.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from email.utils import formatdate
from functools import lru_cache, partial
from http.client import responses
from pathlib import Path
from typing import cast

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from podling.apiserver.http.connections import HEADER_LIMIT, LINGER, MOST_HEADERS, Connection, Connections
from podling.apiserver.http.http_request import (
    HttpRequest,
    discarded,
    http_request,
    log,
    not_http,
    read_request,
    refusal,
)
from podling.apiserver.request.request import Request, audit_id
from podling.apiserver.request.response import NO_CONTENT, NOT_SNIFFED, Handle, Response
from podling.process.tls import USUAL_OFFER, Named, Offer, Reread, followed_context, listening_context
from podling.process.waits import long_work
from podling.streaming.wire import Disconnected

LARGE = 64 * 1024
"""Bytes from which on a body is written separately, since copying it behind its headers would cost more."""
PIECE = 256 * 1024
"""Bytes that are encrypted in 0.2 ms."""
SENDING = 40e-6
"""Seconds of CPU that it takes to wake one stream's task and write a small frame."""
LONGEST_REST = 0.1
SHUTDOWN_GRACE = 5.0
"""Seconds that streams have to finish before their connections are closed."""
NEVER_REFUSED = ("/readyz", "/livez", "/healthz", "/metrics")
"""The beginnings of paths that a server answers until it ends, as kube-apiserver does."""
TRY_ANOTHER = "The apiserver is shutting down, please try again later.\n"
RETRY_AFTER = 5
"""Seconds."""


def tls_context(
    certificate: Path,
    key: Path,
    *client_cas: Path,
    others: Sequence[tuple[Path, Path, Collection[str]]] = (),
    offer: Offer = USUAL_OFFER,
) -> ssl.SSLContext:
    """Clients may present a certificate signed by `client_cas`, whatever its time; any other fails the
    handshake.
    `others`: certificates and keys for those who call the server by such names. Files that were replaced are
    used from the next handshake on. Raises OSError or ValueError."""

    def following(certificate: Path, key: Path) -> tuple[Sequence[Path], Callable[[], ssl.SSLContext]]:
        # One ticket is enough to resume a session, and all that Go sends.
        made = partial(listening_context, certificate, key, client_cas, tickets=1, offer=offer)
        return (certificate, key, *client_cas), made

    named = [Named(names, Reread(*following(one, its_key))) for one, its_key, names in others]
    return followed_context(*following(certificate, key), named)


@asynccontextmanager
async def listening(
    handle: Handle,
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
    *,
    end_streams: Callable[[], None],
    connections: Connections | None = None,
) -> AsyncIterator[int]:
    """Serve while the block runs; yields the port.

    `end_streams` is called at the end and must end all open streams. Servers on several addresses share their
    `connections`. Raises OSError if the address and port cannot be bound.
    """
    connections = connections or Connections()
    limits = connections.limits
    server = web.Server(
        _Server(handle, limits.body_seconds, connections).serve,
        handler_cancellation=True,
        request_factory=http_request,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=1024) as listener:
        listener.setblocking(False)
        async with asyncio.TaskGroup() as tasks:
            accepting = tasks.create_task(
                connections.accept(
                    listener,
                    tls,
                    server,
                    access_log=None,
                    logger=log,
                    auto_decompress=False,
                    max_line_size=HEADER_LIMIT,
                    max_field_size=HEADER_LIMIT,
                    max_headers=MOST_HEADERS,
                    keepalive_timeout=limits.idle_seconds,
                    lingering_time=LINGER,
                )
            )
            connections.listen(listener, accepting)
            try:
                yield listener.getsockname()[1]
            finally:
                end_streams()
                await connections.drain()
                server.pre_shutdown()
                await server.shutdown(SHUTDOWN_GRACE)


class _Server:
    def __init__(self, handle: Handle, body_seconds: float, connections: Connections) -> None:
        self._handle = handle
        self._body_seconds = body_seconds
        self._connections = connections
        self._writers = Writers()

    async def serve(self, arrived: web.BaseRequest) -> web.StreamResponse:
        if arrived.method == "OPTIONS" and arrived.raw_path == "*":
            # Asks about the server, not about anything of it (RFC 9110, 9.3.7): answered as by Go's server.
            return web.Response()
        if refused := refusal(cast(HttpRequest, arrived)):
            return refused
        connection = cast(Connection, arrived.protocol)
        certificate, address = connection.certificate, connection.address
        connection.is_streaming = False
        is_ascii = connection.is_ascii
        request = read_request(arrived, self._body_seconds, certificate, address, is_ascii=is_ascii)
        if request is None:
            return not_http()
        everyone = self._connections
        if everyone.is_ending and everyone.refuses and not is_never_refused(request):
            if arrived.can_read_body and not await discarded(arrived):
                connection.leave_unread()
            return try_another(request.headers)
        response = await self._handle(request)
        body = response.body
        # Of the usual answer this is all that is asked of it: `AsyncGenerator` is asked for slowly.
        if not isinstance(body, bytes) and isinstance(body, AsyncGenerator):
            connection.stream()
            # Before it ends the body may be on its way to whoever answers.
            answer = await self._stream(arrived, response, body)
            if arrived.can_read_body and not await discarded(arrived):
                answer.force_close()
            return answer
        # Nothing of a body comes after a head that announces none.
        if is_unread := request.read is not None and arrived.can_read_body and not await discarded(arrived):
            response.headers["Connection"] = "close"
        if not isinstance(body, bytes):
            connection.stream()
            return await body.run(arrived)
        if is_unread:
            connection.leave_unread()
        closing = not arrived.keep_alive or "Connection" in response.headers or everyone.is_ending
        if arrived.method == "HEAD" or arrived.version != HttpVersion11 or closing:
            response.headers["Content-Type"] = response.content_type
            whole = web.Response(status=response.status, headers=response.headers, body=body + response.end)
            if closing:
                whole.force_close()
            return whole
        # aiohttp uses nothing of a StreamResponse that _Whole does not have.
        return cast(
            web.StreamResponse, _Whole(head_of(response, len(body) + len(response.end)), body, response.end)
        )

    async def _stream(
        self, arrived: web.BaseRequest, response: Response, body: AsyncGenerator[bytes, None]
    ) -> web.StreamResponse:
        response.headers["Content-Type"] = response.content_type
        answer = web.StreamResponse(status=response.status, headers=response.headers)
        if "Connection" in response.headers:
            answer.force_close()
        loop, last = asyncio.get_running_loop(), -1
        try:
            async with aclosing(body):
                await answer.prepare(arrived)
                async for piece in body:
                    # A client that has left is about to have its handler cancelled.
                    if arrived.transport is None or arrived.transport.is_closing():
                        return answer
                    await answer.write(piece)
                    last = self._writers.wrote(loop.time(), last)
                    # The loop's timers have a resolution of 1 ms.
                    if (delay := write_delay(piece, self._writers.count)) >= 0.001:
                        await asyncio.sleep(delay)
            await answer.write_eof()
        except Disconnected:
            # The source of the stream failed. Close the connection, so that the client cannot take what it
            # has for the whole.
            if arrived.transport is not None:
                arrived.transport.close()
        return answer


def is_never_refused(request: Request) -> bool:
    """Whether a server answers until it ends: about its health, and servers themselves, as kube-apiserver."""
    itself = request.headers.get("User-Agent", "").startswith("kube-apiserver/")
    return itself or request.path.startswith(NEVER_REFUSED)


def try_another(asked: Mapping[str, str]) -> web.Response:
    """What somebody is answered who asks while the server ends, in kube-apiserver's words; `asked`: the
    headers."""
    headers = {"Audit-Id": audit_id(asked), **NOT_SNIFFED}
    headers |= {"Connection": "close", "Retry-After": str(RETRY_AFTER)}
    answer = web.Response(status=429, text=TRY_ANOTHER, headers=headers)
    answer.force_close()
    return answer


class Writers:
    """How many streams have something to send: those that have written in this slice of LONGEST_REST seconds,
    or in the one before if those were more. Watches of what does not change count for nothing."""

    def __init__(self) -> None:
        self._slice = 0
        self._now = 0
        self._before = 0

    @property
    def count(self) -> int:
        return max(self._now, self._before)

    def wrote(self, time: float, last: int) -> int:
        """A stream writes at `time`, in seconds, that has last written in the slice `last`. Returns the slice
        now."""
        now = int(time / LONGEST_REST)
        if now != self._slice:
            self._before = self._now if now == self._slice + 1 else 0
            self._slice, self._now = now, 0
        if last != now:
            self._now += 1
        return now


def write_delay(piece: bytes, streams: int) -> float:
    """Delay, in seconds, before the next write of a watch stream, to batch frames when many streams have any.

    A small write costs as much as a larger one. The delay grows with the number of streams, so that all of
    them together use at most a tenth of the loop's time, however fast objects change.
    """
    return 0.0 if len(piece) > LARGE else min(streams * 10 * SENDING, LONGEST_REST)


class _Whole:
    """A complete answer on a connection that is kept open: nearly every answer is one.

    It is written to the transport directly, without aiohttp's `StreamResponse`, whose general case costs half
    as much as the whole pipeline does for a GET.
    """

    __slots__ = ("_body", "_end", "_head")
    keep_alive = True

    def __init__(self, head: bytes, body: bytes, end: bytes) -> None:
        self._head = head
        self._body = body
        self._end = end

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        writer, transport = request.writer, request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has gone")
        if len(self._body) > LARGE:
            transport.write(self._head)
            # Not all at once: the kernel may take megabytes, and then there is nothing to wait for.
            for at in range(0, len(self._body), PIECE):
                await long_work().wait()
                transport.write(memoryview(self._body)[at : at + PIECE])
                await writer.drain()
            transport.write(self._end)
        else:
            transport.write(self._head + self._body + self._end)
            if transport.get_write_buffer_size():
                await writer.drain()
        return writer

    async def write_eof(self) -> None:
        """Nothing to do: `prepare` has written everything."""


def head_of(response: Response, length: int) -> bytes:
    """Status line, headers and the empty line after them. Raises ValueError for a header with a
    line break."""
    text = "".join([f"{name}: {value}\r\n" for name, value in response.headers.items()])
    if not text.count("\n") == text.count("\r") == len(response.headers) or "\0" in text:
        raise ValueError("a header has a line break in it")
    opening = _opening(response.status, response.content_type, int(time.time()))
    if response.status == NO_CONTENT:
        return f"{opening}{text}\r\n".encode()
    return f"{opening}Content-Length: {length}\r\n{text}\r\n".encode()


@lru_cache(maxsize=64)
def _opening(status: int, content_type: str, second: int) -> str:
    """The first lines, which many answers within one second have in common."""
    date = formatdate(second, usegmt=True)
    content = "" if status == NO_CONTENT or not content_type else f"Content-Type: {content_type}\r\n"
    return f"HTTP/1.1 {status} {responses.get(status, '')}\r\n{content}Date: {date}\r\n"
