"""Taking a connection over from aiohttp, on both event loops, and giving every trace of it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from aiohttp import web

from podling.streaming.session import Session
from podling.streaming.spdy.connection import SpdyWire
from podling.streaming.takeover import taken_over
from podling.streaming.upgrade import Address, request_head, upgrade
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire
from podling.streaming.wire import Wire

Run = Callable[[Coroutine[Any, Any, None]], None]
CHANNELS = SUBPROTOCOLS["v5.channel.k8s.io"]
WIRES: dict[str, Callable[[bool], Wire]] = {
    "SPDY/3.1": lambda client: SpdyWire(client=client),
    "websocket": lambda client: ChannelWire(CHANNELS, client=client),
}


async def echo_once(session: Session) -> None:
    while (stream := await session.accept()) is not None:
        if stream.headers["streamtype"] == "stdin":
            break
    assert stream
    while data := await stream.read():
        await stream.write(data) if isinstance(session.wire, SpdyWire) else await say_stdout(session, data)
    await session.finish()


async def say_stdout(session: Session, data: bytes) -> None:
    await session.send(session.wire.data(1, data))


def request(protocol: str) -> bytes:
    headers = [("Host", "x"), ("Connection", "Upgrade"), ("Upgrade", protocol), ("Content-Length", "0")]
    return request_head("POST" if protocol.startswith("SPDY") else "GET", "/exec", headers)


async def converse(protocol: str, client: Wire, server: Wire) -> None:
    async def handler(http: web.BaseRequest) -> web.StreamResponse:
        session = Session(server)
        async with taken_over(http, {"Connection": "Upgrade", "Upgrade": protocol}, session) as response:
            await echo_once(session)
        return response

    aiohttp_server = web.Server(handler, handler_cancellation=True)
    listener = await asyncio.get_running_loop().create_server(aiohttp_server, "127.0.0.1", 0)
    upgraded = await upgrade(Address(*listener.sockets[0].getsockname()), request(protocol))
    session = Session(client)
    upgraded.hand_to(session)
    stdin = session.open({"streamtype": "stdin"})
    heard = stdin if protocol.startswith("SPDY") else session.open({"streamtype": "stdout"})
    await stdin.write(b"echo")
    assert await heard.read() == b"echo"
    stdin.end()
    assert await heard.read() == b""
    await session.finish()
    listener.close()
    await aiohttp_server.shutdown(5)
    assert aiohttp_server.connections == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("protocol", WIRES)
def test_a_conversation_over_a_connection_taken_from_aiohttp(run: Run, protocol: str) -> None:
    run(converse(protocol, WIRES[protocol](True), WIRES[protocol](False)))
