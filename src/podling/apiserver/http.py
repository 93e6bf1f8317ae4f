"""HTTPS: requests from sockets to the pipeline, and its answers back.

The low-level server is used because the pipeline routes by itself and because a connection must be handed
on whole when it is upgraded. A client that goes away cancels its handler, which closes the stream it was
reading; a client that reads slowly is waited for here, and its stream's own queue decides when it has
waited too long.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from aiohttp import web

from podling.apiserver.pipeline import BODY_LIMIT
from podling.apiserver.request import Request, Subject
from podling.apiserver.response import Handle, Response

HEADER_LIMIT = 1 << 20
"""An exec names its command in the URL, so lines may be long; this is what Go's server takes, too."""
SHUTDOWN_GRACE = 5.0
"""Seconds answers in progress have to end before their connections are closed."""


def tls_context(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    """Clients may present a certificate of `client_ca`; one of another authority ends the handshake."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_ca))
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def listening(
    handle: Handle, host: str, port: int, tls: ssl.SSLContext | None, *, end_streams: Callable[[], None]
) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port. On the way out `end_streams` must end all open streams.

    Raises OSError when the port cannot be had.
    """
    loop = asyncio.get_running_loop()
    answers = web.Server(
        _handler(handle),
        handler_cancellation=True,
        access_log=None,
        max_line_size=HEADER_LIMIT,
        max_field_size=HEADER_LIMIT,
    )
    server = await loop.create_server(answers, host, port, ssl=tls, backlog=1024)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        end_streams()
        answers.pre_shutdown()
        await answers.shutdown(SHUTDOWN_GRACE)


def _handler(handle: Handle) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    async def serve(arrived: web.BaseRequest) -> web.StreamResponse:
        response = await handle(await _request(arrived))
        body = response.body
        if isinstance(body, bytes):
            response.headers["Content-Type"] = response.content_type
            return web.Response(status=response.status, headers=response.headers, body=body)
        if isinstance(body, AsyncGenerator):
            return await _stream(arrived, response, body)
        return await body.run(arrived)

    return serve


async def _request(arrived: web.BaseRequest) -> Request:
    path, _, query = arrived.raw_path.partition("?")
    body = await _body(arrived) if arrived.can_read_body else b""
    return Request(arrived.method, path, query, arrived.headers, body, certificate=_subject(arrived))


async def _body(arrived: web.BaseRequest) -> bytes:
    """The body, cut off just above the limit: enough for the pipeline to refuse it."""
    if arrived.headers.get("Expect", "").lower() == "100-continue":
        await arrived.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = bytearray()
    async for piece in arrived.content.iter_any():
        body += piece
        if len(body) > BODY_LIMIT:
            break
    return bytes(body)


def _subject(arrived: web.BaseRequest) -> Subject | None:
    certificate = arrived.get_extra_info("peercert")
    return certificate["subject"] if certificate else None


async def _stream(
    arrived: web.BaseRequest, response: Response, body: AsyncGenerator[bytes, None]
) -> web.StreamResponse:
    response.headers["Content-Type"] = response.content_type
    answer = web.StreamResponse(status=response.status, headers=response.headers)
    async with aclosing(body):
        await answer.prepare(arrived)
        async for piece in body:
            await answer.write(piece)
    await answer.write_eof()
    return answer
