"""A server for health and metrics: HTTP/1.1, of which it reads the request's first line.

A connection is for one request, and has a few seconds for it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from http import HTTPStatus
from typing import NamedTuple

TEXT = "text/plain; charset=utf-8"
LONGEST = 10.0
"""Seconds for a handshake, and for a request with its answer."""
LONGEST_HEAD = 8192
"""Bytes of a request that are read."""
MOST = 64
"""Connections at once; others are closed unread."""


class Answer(NamedTuple):
    status: int
    content_type: str
    body: bytes
    headers: tuple[str, ...] = ()
    """Further lines of the head."""


NOT_FOUND = Answer(404, TEXT, b"404 page not found\n")

Answering = Callable[[str, str], Answer]
"""Called with a request's method and target."""


@asynccontextmanager
async def serving(
    answer: Answering, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serve at `listener`, which is closed in the end, while the block runs."""
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with closing(writer), suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            if connections <= MOST:
                async with asyncio.timeout(LONGEST):
                    await _exchange(reader, writer, answer)
        connections -= 1

    longest = LONGEST if tls else None
    server = await asyncio.start_server(
        talk,
        sock=listener,
        limit=LONGEST_HEAD,
        ssl=tls,
        ssl_handshake_timeout=longest,
        ssl_shutdown_timeout=longest,
    )
    async with server:
        yield


def listening(address: str, port: int) -> socket.socket:
    """At all addresses of the machine if `address` is empty. Raises OSError."""
    if not address:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family)


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answering) -> None:
    """Raises OSError, EOFError, ValueError, LimitOverrunError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, target, _ = head.partition("\r\n")[0].split(" ")
    said = answer(method, target)
    lines = (
        f"HTTP/1.1 {said.status} {HTTPStatus(said.status).phrase}",
        f"Content-Type: {said.content_type}",
        "X-Content-Type-Options: nosniff",
        f"Content-Length: {len(said.body)}",
        *said.headers,
        "Connection: close",
    )
    writer.write("\r\n".join((*lines, "\r\n")).encode() + (b"" if method == "HEAD" else said.body))
    await writer.drain()
