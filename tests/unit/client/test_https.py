"""The transport over HTTPS, with servers that do not behave."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from podling.client import https
from podling.client.dial import dial
from podling.client.https import MOST_DIALLED, HttpsTransport
from podling.client.login import StandingLogin
from podling.client.route import Route
from podling.client.tls import Pair, Trust, client_tls
from podling.process.tls import Reread

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


class Heard(asyncio.Protocol):
    def __init__(self) -> None:
        self.first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.first.set_result(data)


async def test_a_connection_is_made_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used once, unless it is old or the server has ended it."""
    writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writers.put(writer)
        with suppress(OSError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    login = StandingLogin(client_tls(Trust(), Pair()), Reread([], str))
    made = HttpsTransport(f"http://127.0.0.1:{port}", login)
    shown, heard = await login.present(), Heard()
    async with asyncio.timeout(10):
        await made.reserve()
        first = await writers.get()
        transport = await made.connect(shown, lambda: heard)
        first.write(b"hello")
        assert await heard.first == b"hello"
        transport.abort()
        await made.reserve()
        (await writers.get()).close()
        while not made._reserved[0].transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(0)
        (await made.connect(shown, Heard)).abort()
        await writers.get()
        await made.reserve()
        old = await writers.get()
        monkeypatch.setattr(https, "LONGEST_UNASKED", 0.0)
        (await made.connect(shown, Heard)).abort()
        await old.wait_closed()
        await made.reserve()
        await made.close()
        await (await writers.get()).wait_closed()
        server.close()
        await server.wait_closed()
    nobody = HttpsTransport("http://127.0.0.1:1", login)
    await nobody.reserve()


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


async def test_a_burst_of_requests_makes_few_connections_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for its turn takes one that is free by then."""
    dialled = at_a_time = most = 0

    async def counted(*arguments: Any) -> asyncio.Transport:
        nonlocal dialled, at_a_time, most
        dialled, at_a_time = dialled + 1, at_a_time + 1
        most = max(most, at_a_time)
        try:
            return await dial(*arguments)
        finally:
            at_a_time -= 1

    monkeypatch.setattr("podling.client.dial.dial", counted)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return

    async with transport(serve) as made, asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(made.request("GET", "/readyz", {}, None)) for _ in range(400)]
    assert {task.result()[0] for task in asked} == {200}
    assert most == MOST_DIALLED
    assert dialled < 200


async def test_a_connection_that_is_free_is_for_who_waits_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long others take to be made, and although some who waited have left."""
    dialled = 0

    async def one_only(*arguments: Any) -> asyncio.Transport:
        nonlocal dialled
        dialled += 1
        if dialled > 1:
            await asyncio.Event().wait()
        return await dial(*arguments)

    monkeypatch.setattr("podling.client.dial.dial", one_only)
    answered: list[str] = []
    held, release = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.set()
        await release.wait()
        with suppress(asyncio.IncompleteReadError):
            while True:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                await reader.readuntil(b"\r\n\r\n")

    async def ask(made: HttpsTransport, name: str) -> None:
        await made.request("GET", f"/{name}", {}, None)
        answered.append(name)
        if name == "first":
            # It has just been handed the connection.
            waiting[0].cancel()

    async with transport(serve) as made, asyncio.TaskGroup() as tasks, asyncio.timeout(10):
        first = tasks.create_task(ask(made, "first"))
        await held.wait()
        stuck = [tasks.create_task(ask(made, "stuck")) for _ in range(MOST_DIALLED)]
        waiting = [tasks.create_task(ask(made, str(n))) for n in range(10)]
        await asyncio.sleep(0)
        waiting[3].cancel()
        release.set()
        await first
        await tasks.create_task(ask(made, "late"))
        for one in stuck:
            one.cancel()
    assert answered == ["first", *(str(n) for n in (1, 2, 4, 5, 6, 7, 8, 9)), "late"]
    assert not made._waiting and made._dialling == 0


async def test_what_unpacks_to_more_than_is_kept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little gzip may be very much: it is unpacked in pieces, and no more is kept than has a limit."""
    monkeypatch.setattr(https, "MOST", 8 * https.PIECE)
    packed = gzip.compress(bytes(64 * https.PIECE))
    assert len(packed) < https.PIECE

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
        writer.write(head.encode() + packed)
        await writer.drain()

    async with transport(answer) as client:
        with pytest.raises(OSError, match="more than"):
            await client.request("GET", "/", {}, None)
        sizes = [len(piece) async for piece in client.stream("/", {})]
        assert max(sizes) <= https.PIECE and sum(sizes) == 64 * https.PIECE


async def test_a_tunnel_ends_with_what_went_wrong_in_it() -> None:
    """A server behind a proxy that speaks no TLS leaves no connection to the proxy."""
    ended = asyncio.Event()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await reader.readexactly(1)
        writer.write(b"this is no TLS")
        try:
            while await reader.read(1024):
                pass
        except ConnectionError:
            pass
        finally:
            writer.close()
            ended.set()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    route = Route(urlsplit("https://api.example"), proxy=urlsplit(f"http://127.0.0.1:{port}"))
    with pytest.raises(OSError):
        await dial(route, ssl.create_default_context(), asyncio.Protocol)
    async with asyncio.timeout(5):
        await ended.wait()
    server.close()
    await server.wait_closed()
