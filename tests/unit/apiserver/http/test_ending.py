"""What clients are told by a server that ends, over real loopback connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from podling.apiserver.http import connections
from podling.apiserver.http.connections import Connections
from podling.apiserver.http.server import listening
from podling.apiserver.request.request import Request
from podling.apiserver.request.response import Response

HEAD = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
GET = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"


class Ending(NamedTuple):
    """`told` is set when the server is to end; `ended` is set once it has."""

    port: int
    told: asyncio.Event
    ended: asyncio.Event
    heard: asyncio.Event
    """That a request has reached a handler."""
    everyone: Connections

    async def ask(self, *said: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.writelines(said)
        return reader, writer

    async def end(self) -> None:
        self.told.set()
        while not self.everyone.is_ending:  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(*, refuses: bool = False) -> AsyncIterator[Ending]:
    heard, stream_ends = asyncio.Event(), asyncio.Event()

    async def stream() -> AsyncGenerator[bytes, None]:
        yield b"first"
        await stream_ends.wait()
        yield b"last"

    async def handle(request: Request) -> Response:
        heard.set()
        if request.path == "/stream":
            return Response(200, stream())
        body = await request.read() if request.read else b""
        return Response(200, b"%b %b" % (request.path.encode(), body), "text/plain")

    loop = asyncio.get_running_loop()
    port, everyone = loop.create_future(), Connections(refuses=refuses)
    ending = asyncio.Event(), asyncio.Event(), heard, everyone

    async def serve() -> None:
        async with listening(
            handle, "127.0.0.1", 0, None, end_streams=stream_ends.set, connections=everyone
        ) as chosen:
            port.set_result(chosen)
            await ending[0].wait()
        ending[1].set()

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(20):
        tasks.create_task(serve())
        yield Ending(await port, *ending)
        ending[0].set()


async def test_a_body_on_its_way_is_read_and_its_request_answered() -> None:
    async with serving() as server:
        reader, writer = await server.ask(HEAD, b"bo")
        await server.heard.wait()
        await server.end()
        writer.write(b"dy")
        heard = await reader.read()
        assert heard.startswith(b"HTTP/1.1 200 OK\r\n") and heard.endswith(b"\r\n\r\n/a body")
        assert b"Connection: close\r\n" in heard
        writer.close()


async def test_nobody_else_is_waited_for() -> None:
    async with serving() as server:
        idle, silent = await server.ask()
        kept, asking = await server.ask(GET % b"/kept")
        await kept.readuntil(b"/kept ")
        server.heard.clear()
        _, busy = await server.ask(HEAD)
        await server.heard.wait()
        await server.end()
        assert await idle.read() == b"" == await kept.read()
        with pytest.raises(ConnectionRefusedError):
            await server.ask()
        assert not server.ended.is_set()
        for writer in (silent, asking, busy):
            writer.close()


async def test_streams_end_as_whole_answers() -> None:
    async with serving() as server:
        reader, writer = await server.ask(GET % b"/stream")
        await reader.readuntil(b"first")
        await server.end()
        assert (await reader.read()).endswith(b"last\r\n0\r\n\r\n")
        await server.ended.wait()
        writer.close()


async def test_an_answer_takes_as_long_as_it_may_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "LONGEST_ANSWER", 0.05)
    monkeypatch.setattr("podling.apiserver.http.server.SHUTDOWN_GRACE", 0.05)
    async with serving() as server:
        reader, writer = await server.ask(HEAD)
        await server.heard.wait()
        await server.end()
        assert await reader.read() == b""
        await server.ended.wait()
        writer.close()
    assert "requests were not answered for 0.05 seconds" in caplog.text


async def test_who_comes_meanwhile_is_sent_to_another_server_if_that_is_asked_for() -> None:
    async with serving(refuses=True) as server:
        kept, asking = await server.ask(GET % b"/kept")
        await kept.readuntil(b"/kept ")
        server.heard.clear()
        busy, finishing = await server.ask(HEAD, b"bo")
        await server.heard.wait()
        await server.end()
        asking.write(GET % b"/kept")
        for reader, writer in ((kept, asking), await server.ask(HEAD, b"body"), await server.ask(GET % b"/")):
            refused = await reader.read()
            assert refused.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
            assert b"\r\nRetry-After: 5\r\n" in refused and b"\r\nConnection: close\r\n" in refused
            assert refused.endswith(b"\r\n\r\nThe apiserver is shutting down, please try again later.\n")
            writer.close()
        health, writer = await server.ask(GET % b"/readyz/ping")
        assert (await health.readline()) == b"HTTP/1.1 200 OK\r\n"
        finishing.write(b"dy")
        assert (await busy.read()).endswith(b"/a body")
        await server.ended.wait()
        for one in (writer, finishing):
            one.close()
