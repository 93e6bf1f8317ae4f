"""Connections within a process, on both event loops: like any other, to their last byte."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from podling.streaming import driver
from podling.streaming.driver import Driver, connect_within

Run = Callable[[Coroutine[Any, Any, None]], None]
on_both_loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


class End(Driver):
    """Keeps what it hears, unless it is held back."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = bytearray()
        self.news = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.heard += data
        self.news.set()

    async def hears(self, wanted: bytes) -> None:
        while self.heard != wanted:
            self.news.clear()
            await self.news.wait()


async def joined() -> tuple[End, End]:
    client, server = End(), End()
    await connect_within(lambda: server, lambda: client)
    return client, server


@on_both_loops
def test_each_end_hears_the_other_and_its_end(run: Run) -> None:
    async def converse() -> None:
        client, server = await joined()
        client.say(b"there")
        server.say(b"back")
        await server.hears(b"there")
        await client.hears(b"back")
        client.say(b"last words")
        client.close()
        await server.wait_lost()
        assert server.heard == b"therelast words"
        await client.gone()

    run(asyncio.wait_for(converse(), 10))


@on_both_loops
def test_who_does_not_read_is_waited_for(run: Run) -> None:
    async def flood() -> None:
        client, server = await joined()
        server.hold_peer()
        async with asyncio.TaskGroup() as group:
            stalled = group.create_task(client.stalled(0.0))
            while not stalled.done():
                client.say(bytes(1 << 20))
                await asyncio.sleep(0)
        server.release_peer()
        await client.room()
        for end in (client, server):
            end.drop()
            await end.wait_lost()

    run(asyncio.wait_for(flood(), 10))


@on_both_loops
def test_a_client_that_leaves_while_it_is_held_back_is_noticed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podling.streaming.driver.HELD", 0.0)
    monkeypatch.setattr("podling.streaming.driver.GRACE", 0.0)

    async def leave() -> None:
        client, server = await joined()
        server.serves_client = True
        server.hold_peer()
        client.say(b"unread")
        client.close()
        await server.wait_lost()
        await client.gone()

    run(asyncio.wait_for(leave(), 10))


async def test_a_server_that_takes_nobody_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    def pair() -> tuple[socket.socket, socket.socket]:
        made.extend(socket.socketpair())
        return made[0], made[1]

    def refuse() -> asyncio.Protocol:
        raise ConnectionRefusedError("not now")

    monkeypatch.setattr(driver, "socket", type("sockets", (), {"socketpair": staticmethod(pair)}))
    with pytest.raises(ConnectionRefusedError, match="not now"):
        await connect_within(refuse, End)
    assert [end.fileno() for end in made] == [-1, -1]
