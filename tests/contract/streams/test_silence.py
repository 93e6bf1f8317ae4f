"""Connections on which nothing is said: for hours, because there is nothing to say, and for good, because the
client has lost its network.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from podling.kubelet.server import relay
from podling.streaming import driver
from podling.streaming.driver import Factory
from podling.streaming.upgrade import Address
from podling.streaming.websocket.tunnel import SUBPROTOCOL as TUNNEL

if TYPE_CHECKING:
    from contract.streams.conftest import Node

pytestmark = [pytest.mark.containerd]

COMMANDS = ("spdy:v4.channel.k8s.io", "v5.channel.k8s.io", "v4.base64.channel.k8s.io")
PORTS = ("spdy:portforward.k8s.io", TUNNEL)
HOURS = 6 * 3600.0
CLONE_NEWNET = 0x40000000
NO_SETTINGS = bytes.fromhex("80030004 00000004 00000000")
"""A frame of SPDY that nobody answers."""

only_network = pytest.mark.parametrize("seam", ["network"])


def let_hours_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every timer of this process, which is client and server in one."""
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.monotonic() + HOURS)


@pytest.mark.parametrize("protocol", COMMANDS)
@pytest.mark.parametrize("verb", ["exec", "attach"])
async def test_a_session_is_there_after_hours_of_silence(
    node: Node, monkeypatch: pytest.MonkeyPatch, protocol: str, verb: str
) -> None:
    await node.make("c", "cat", stdin=True)
    async with node.command(protocol, verb, "c", "cat", stdin=True, patience=2 * HOURS) as remote:
        await remote["stdin"].write(b"before\n")
        await remote.until("stdout", b"before\n")
        let_hours_pass(monkeypatch)
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await remote["stdin"].write(b"after\n")
            await remote.until("stdout", b"after\n")


@pytest.mark.parametrize("protocol", PORTS)
async def test_a_port_forward_is_there_after_hours_of_silence(
    node: Node, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    await node.make("c", "sh", "-c", "nc -l -p 8080 -e cat; sleep 1000")
    listens = "until grep -q ':1F90 .* 0A' /proc/net/tcp*; do sleep 0.01; done"
    async with node.command(COMMANDS[0], "exec", "c", "sh", "-c", listens) as remote:
        await remote.all("error")
    session = await node.connect(protocol, "/portForward/default/pod", [])
    port = {"port": "8080", "requestid": "0"}
    session.open({"streamtype": "error", **port}).end()
    data = session.open({"streamtype": "data", **port})
    for word in (b"before", b"after"):
        async with asyncio.timeout(20):
            await data.write(word)
            assert await data.read() == word
        let_hours_pass(monkeypatch)
        await asyncio.sleep(0)
    session.drop()


@only_network
async def test_a_follower_of_a_log_is_there_after_hours_of_silence(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.make("c", "cat", stdin=True)
    assert node.address.tls
    connector = aiohttp.TCPConnector(ssl=node.address.tls)
    url = f"https://127.0.0.1:{node.address.port}/containerLogs/default/pod/c?follow=true"
    forever = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=forever) as session,
        session.get(url) as log,
        node.command(COMMANDS[0], "attach", "c", stdin=True, patience=2 * HOURS) as remote,
    ):
        for word in (b"before\n", b"after\n"):
            async with asyncio.timeout(20):
                await remote["stdin"].write(word)
                assert await log.content.readline() == word
            let_hours_pass(monkeypatch)
            await asyncio.sleep(0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("IDLE", 1), ("INTERVAL", 1), ("QUESTIONS", 2)):
        monkeypatch.setattr(driver, name, value)


@dataclass(frozen=True)
class Elsewhere:
    """A network namespace, joined with this one by a cable that can be cut; `host` is our end's address."""

    name: str
    host: str

    def cut(self) -> None:
        ip("-n", self.name, "link", "set", "client", "down")

    def socket_to(self, port: int) -> socket.socket:
        made: list[socket.socket] = []

        def connect() -> None:
            # Of this thread alone.
            with Path(f"/run/netns/{self.name}").open() as namespace:
                ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET)
            made.append(socket.create_connection((self.host, port), timeout=10))

        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
        made[0].setblocking(False)
        return made[0]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    name, network = f"podling-test-{os.getpid()}", f"198.18.{os.getpid() % 256}"
    cable = f"pdlc{os.getpid()}"
    ip("netns", "add", name)
    try:
        ip("link", "add", cable, "type", "veth", "peer", "name", "client", "netns", name)
        ip("address", "add", f"{network}.1/30", "dev", cable)
        ip("link", "set", cable, "up")
        ip("-n", name, "address", "add", f"{network}.2/30", "dev", "client")
        ip("-n", name, "link", "set", "client", "up")
        yield Elsewhere(name, f"{network}.1")
    finally:
        ip("link", "delete", cable)
        ip("netns", "delete", name)


@only_network
@pytest.mark.usefixtures("impatient", "leaves_nothing")
@pytest.mark.parametrize("verb", ["exec", "attach", "portForward"])
async def test_a_client_that_has_lost_its_network_is_noticed(
    node: Node, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """It says no goodbye; nothing of it is left all the same, and what it was joined to is free."""
    monkeypatch.setattr(relay, "LAST_WORDS", 0.1)
    await node.make("c", "cat", stdin=True)
    loop, connection = asyncio.get_running_loop(), elsewhere.socket_to(node.address.port)

    async def connect(client: Factory) -> asyncio.Transport:
        transport, _ = await loop.create_connection(
            client, sock=connection, ssl=node.address.tls, server_hostname="127.0.0.1"
        )
        return transport

    far = replace(node, address=Address("127.0.0.1", node.address.port, within=connect))
    before = asyncio.all_tasks()
    if verb == "portForward":
        session = await far.connect(PORTS[0], "/portForward/default/pod", [])
    else:
        query = [("output", "1"), ("input", "1"), ("command", "cat")]
        session = await far.connect(COMMANDS[0], f"/{verb}/default/pod/c", query)
        streams = {name: session.open({"streamtype": name}) for name in ("error", "stdin", "stdout")}
        await streams["stdin"].write(b"heard\n")
        assert await streams["stdout"].read() == b"heard\n"
    # With it goes the acknowledgement of all that was heard. For what is on its way TCP tries a quarter of an
    # hour before it gives up.
    session.say(NO_SETTINGS)
    elsewhere.cut()
    serving = asyncio.all_tasks() - before
    assert serving
    _, left = await asyncio.wait(serving, timeout=30)
    assert not left
    assert not session.lost, "the client cannot know"
    session.drop()
