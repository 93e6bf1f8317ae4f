"""The transport over HTTPS, with servers that do not behave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from podling.client.https import HttpsTransport
from podling.client.login import StandingLogin
from podling.client.tls import Pair, Reread, Trust, client_tls

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def transport(serve: Serve, deadline: float = 5.0) -> AsyncIterator[HttpsTransport]:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(conversation, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    login = StandingLogin(client_tls(Trust(), Pair()), Reread([], str))
    made = HttpsTransport(f"http://127.0.0.1:{port}", login, deadline=deadline)
    try:
        yield made
    finally:
        await made.close()
        server.close()
        await server.wait_closed()


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with transport(silence, deadline=0.05) as made:
        with pytest.raises(OSError, match="did not answer GET /readyz in time"):
            await made.request("GET", "/readyz", {}, None)


async def test_a_server_that_ends_in_the_middle_is_an_error() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()

    async with transport(half) as made:
        with pytest.raises(OSError):
            await made.request("GET", "/readyz", {}, None)


async def test_many_streams_leave_room_for_requests() -> None:
    """A kubelet watches every config map its pods use, and still has to write their status."""
    open_streams = asyncio.Semaphore(0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
        await writer.drain()
        await reader.read()

    async with transport(answer) as made, asyncio.TaskGroup() as tasks:

        async def follow() -> None:
            async for _ in made.stream("/api", {}):
                open_streams.release()

        following = [tasks.create_task(follow()) for _ in range(150)]
        for _ in following:
            await asyncio.wait_for(open_streams.acquire(), 10)
        for task in following:
            task.cancel()
