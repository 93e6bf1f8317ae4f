"""Port-forward over every protocol, to a real server in a real pod."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from podling.streaming.session import Session, Stream
from podling.streaming.websocket.tunnel import SUBPROTOCOL as TUNNEL

if TYPE_CHECKING:
    from contract.streams.conftest import Node

pytestmark = pytest.mark.containerd

SPDY = "spdy:portforward.k8s.io"
SERVER = ("sh", "-c", "mkdir /www; echo page > /www/index.html; httpd -f -p 8080 -h /www")


async def answer(stream: Stream) -> bytes:
    await stream.write(b"GET /index.html HTTP/1.0\r\n\r\n")
    heard = b""
    while data := await stream.read():
        heard += data
    return heard


async def listening(node: Node) -> None:
    """The pod's server takes connections."""
    await node.make("web", *SERVER)
    script = "until wget -q -O /dev/null http://127.0.0.1:8080/; do sleep 0.01; done"
    async with node.command("v5.channel.k8s.io", "exec", "web", "sh", "-c", script) as remote:
        await remote.all("error")


@pytest.mark.parametrize("protocol", [SPDY, TUNNEL])
async def test_many_connections_over_one(node: Node, protocol: str) -> None:
    await listening(node)
    session = await node.connect(protocol, "/portForward/default/pod", [])
    for request in range(3):
        port = {"port": "8080", "requestid": str(request)}
        error = session.open({"streamtype": "error", **port})
        error.end()
        data = session.open({"streamtype": "data", **port})
        async with asyncio.timeout(10):
            assert (await answer(data)).endswith(b"page\n")
            assert await error.read() == b""
    session.drop()


@pytest.mark.parametrize("protocol", [SPDY, TUNNEL])
async def test_a_port_nobody_listens_on_is_said_on_the_error_stream(node: Node, protocol: str) -> None:
    session = await node.connect(protocol, "/portForward/default/pod", [])
    port = {"port": "1", "requestid": "0"}
    error = session.open({"streamtype": "error", **port})
    session.open({"streamtype": "data", **port})
    async with asyncio.timeout(10):
        assert b"onnection refused" in await error.read()
    session.drop()


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"])
async def test_channels_say_their_port_and_carry_one_connection(node: Node, protocol: str) -> None:
    await listening(node)
    session = await node.connect(protocol, "/portForward/default/pod", [("port", "8080")])
    data, error = session.open({"streamtype": "stdin"}), session.open({"streamtype": "stdout"})
    async with asyncio.timeout(10):
        assert await error.read() == (8080).to_bytes(2, "little")
        assert await data.read() == (8080).to_bytes(2, "little")
        assert (await answer(data)).endswith(b"page\n")
    session.drop()


@pytest.mark.parametrize("protocol", [SPDY, TUNNEL, "v4.channel.k8s.io"])
async def test_it_ends_with_its_sandbox(node: Node, protocol: str) -> None:
    """Idle or with a connection open: nothing is left that it could lead to."""
    await listening(node)
    session = await node.connect(protocol, "/portForward/default/pod", [("port", "8080")])
    if protocol != "v4.channel.k8s.io":
        open_connection(session)
    async with asyncio.timeout(20):
        await node.host.runtime.stop_pod_sandbox(node.host.sandbox)
        await session.wait_lost()


def open_connection(session: Session) -> None:
    port = {"port": "8080", "requestid": "0"}
    session.open({"streamtype": "error", **port}).end()
    session.open({"streamtype": "data", **port})
