"""A client that knows one place reaches whichever API server is there."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from podling.client.balance import Balancer, Place

CLIENTS, PIECES, PATIENCE = 100, 300, 5
RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER."""


@asynccontextmanager
async def server(name: bytes) -> AsyncIterator[Place]:
    """Says its name, then what it is sent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name)
        while piece := await reader.read(1000):
            writer.write(piece)
        writer.close()

    serving = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with serving:
        host, port = serving.sockets[0].getsockname()
        yield host, port


async def said(place: Place, sent: bytes = b"") -> bytes:
    reader, writer = await asyncio.open_connection(*place)
    try:
        first = await reader.read(1000)
        writer.write(sent)
        return first + (await reader.readexactly(len(sent)) if sent else b"")
    finally:
        writer.close()


async def test_connections_go_to_a_server_that_takes_them() -> None:
    async with server(b"one") as one, server(b"two") as two:
        balancer = Balancer([one, two])
        async with balancer.listening() as place:
            assert await said(place, b"x" * 300_000) == b"one" + b"x" * 300_000


async def test_the_next_takes_over_for_one_that_is_gone_and_is_asked_first_from_then_on() -> None:
    async with server(b"gone") as gone:
        pass
    async with server(b"two") as two:
        balancer = Balancer([gone, two])
        async with balancer.listening() as place:
            assert await said(place) == b"two"
            assert balancer.servers == [two, gone]


async def test_without_any_server_a_connection_ends_at_once() -> None:
    async with server(b"gone") as gone:
        pass
    async with Balancer([gone]).listening() as place:
        reader, writer = await asyncio.open_connection(*place)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


async def test_the_end_of_a_server_ends_its_connections() -> None:
    accepted = asyncio.Event()
    ends = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await ends.wait()
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as serving:
        host, port = serving.sockets[0].getsockname()
        async with Balancer([(host, port)]).listening() as place:
            reader, writer = await asyncio.open_connection(*place)
            await accepted.wait()
            ends.set()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()


async def test_what_ends_before_a_server_has_answered_goes_on_at_the_next() -> None:
    """As at one that dies: it takes the connection, and may even hear who asks."""
    heard = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        heard.set()
        writer.transport.abort()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(11))
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as dying,
        await asyncio.start_server(echo, "127.0.0.1", 0) as lives,
    ):
        first, second = ((*one.sockets[0].getsockname(),) for one in (dying, lives))
        balancer = Balancer([first, second])
        async with balancer.listening() as place:
            reader, writer = await asyncio.open_connection(*place)
            writer.write(b"hello")
            await heard.wait()
            writer.write(b" there")
            assert await reader.read() == b"hello there"
            writer.close()
        assert balancer.servers == [second, first]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_is_said_as_a_server_dies_goes_on_at_the_next(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    """Threads: one loop of all would hear of one thing after another."""
    dying, lives = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    for listening in (dying, lives):
        listening.settimeout(PATIENCE)

    def die() -> None:
        for _ in range(CLIENTS):
            client, _ = dying.accept()
            with client:
                client.recv(1)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def echo() -> None:
        for _ in range(CLIENTS):
            client, _ = lives.accept()
            with client:
                while client.recv(1, socket.MSG_PEEK):
                    client.sendall(client.recv(1000))

    def speak(place: Place) -> int:
        with socket.create_connection(place, PATIENCE) as own, own.makefile("rb") as answer:
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(PIECES):
                own.send(b"x")
            return len(answer.read(PIECES))

    async def main() -> None:
        for _ in range(CLIENTS):
            async with Balancer([dying.getsockname(), lives.getsockname()]).listening() as place:
                assert await asyncio.to_thread(speak, place) == PIECES

    with dying, lives, ThreadPoolExecutor() as pool:
        serving = [pool.submit(die), pool.submit(echo)]
        run(main())
        for one in serving:
            one.result()
