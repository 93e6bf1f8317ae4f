"""Clients that break the rules: each is ended cleanly, no other notices, and nothing of it is left."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.kubelet.server import relay
from podling.streaming import driver
from podling.streaming.upgrade import Refused

if TYPE_CHECKING:
    from contract.streams.conftest import Node, Remote

pytestmark = [pytest.mark.containerd, pytest.mark.usefixtures("leaves_nothing")]

SPDY, V4, V5 = "spdy:v4.channel.k8s.io", "v4.channel.k8s.io", "v5.channel.k8s.io"
BASE64 = "v4.base64.channel.k8s.io"
SLEEP = ("sleep", "1000")

every_protocol = pytest.mark.parametrize("protocol", [SPDY, V4, V5, BASE64])


def control(kind: int, body: bytes = b"", *, version: int = 3, length: int | None = None) -> bytes:
    return struct.pack(">HHI", 0x8000 | version, kind, len(body) if length is None else length) + body


def frame(opcode: int, payload: bytes, *, bits: int = 0x80) -> bytes:
    """A masked frame; the mask is zero."""
    length = (
        bytes((0x80 | len(payload),)) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
    )
    return bytes((bits | opcode,)) + length + bytes(4) + payload


FAULTS = {
    "spdy: version 2": (SPDY, control(1, bytes(10), version=2)),
    "spdy: unknown control frame": (SPDY, control(77, bytes(8))),
    "spdy: control frame of 16 MiB": (SPDY, control(1, length=0xFFFFFF)),
    "spdy: data on stream 0": (SPDY, bytes(7) + b"\x01x"),
    "spdy: headers that are not compressed": (
        SPDY,
        control(1, struct.pack(">II", 99, 0) + b"\0\0" + b"nonsense"),
    ),
    "spdy: stream of the server's": (SPDY, control(1, struct.pack(">II", 98, 0) + bytes(2))),
    "spdy: reset too short": (SPDY, control(3, bytes(4))),
    "websocket: not masked": (V5, b"\x82\x02\x00x"),
    "websocket: reserved bits": (V5, frame(2, b"\0x", bits=0xF0)),
    "websocket: reserved opcode": (V4, frame(3, b"\0x")),
    "websocket: long ping": (V4, frame(9, bytes(126))),
    "websocket: continuation of nothing": (V5, frame(0, b"\0x")),
    "websocket: text that is not UTF-8": (BASE64, frame(1, b"0\xff\xfe")),
    "websocket: not base64": (BASE64, frame(1, b"0#!")),
    "websocket: length above 2^63": (V4, b"\x82\xff" + b"\xff" * 8),
    "websocket: close without a code": (V5, frame(8, b"\x03")),
}

HARMLESS = {
    "spdy: a window of 2 GiB": (SPDY, control(9, struct.pack(">II", 1, 0x7FFFFFFF))),
    "spdy: data for a stream that is not": (SPDY, struct.pack(">II", 999, 4) + b"data"),
    "spdy: reset of a stream that is not": (SPDY, control(3, struct.pack(">II", 999, 1))),
    "spdy: settings": (SPDY, control(4, struct.pack(">I", 0))),
    "websocket: unknown channel": (V5, frame(2, b"\x09lost")),
    "websocket: input on an output's channel": (V4, frame(2, b"\x01lost")),
    "websocket: end of an unknown channel": (V5, frame(2, b"\xff\x09")),
    "websocket: empty message": (V4, frame(2, b"")),
    "websocket: channel that is no digit": (BASE64, frame(1, b"~bG9zdA==")),
}


@every_protocol
async def test_what_cannot_be_understood_ends_the_connection(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    for fault, (spoken, said) in FAULTS.items():
        if spoken == protocol:
            with naming(fault):
                await break_off(node, protocol, said)


async def break_off(node: Node, protocol: str, said: bytes) -> None:
    async with node.command(protocol, "exec", "c", "sh", "-c", "echo up; cat", stdin=True) as remote:
        await remote.until("stdout", b"up\n")
        remote.session.say(said)
        await remote.session.wait_lost()
    async with node.command(protocol, "exec", "c", "echo", "fine") as remote:
        assert await remote.all("stdout") == b"fine\n"


@every_protocol
async def test_what_says_nothing_to_anyone_is_passed_over(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    for oddity, (spoken, said) in HARMLESS.items():
        if spoken == protocol:
            with naming(oddity):
                await go_on(node, protocol, said)


async def go_on(node: Node, protocol: str, said: bytes) -> None:
    async with node.command(protocol, "exec", "c", "sh", "-c", "read a; echo $a", stdin=True) as remote:
        remote.session.say(said)
        await remote["stdin"].write(b"heard\n")
        assert await remote.all("stdout") == b"heard\n"


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Whatever goes wrong, went wrong with this."""
    try:
        yield
    except BaseException as error:
        error.add_note(what)
        raise


async def test_a_base64_message_may_not_be_endless(node: Node) -> None:
    await node.make("c", *SLEEP)
    async with node.command(BASE64, "exec", "c", "cat", stdin=True) as remote:
        remote.session.say(frame(1, b"0"[:1] + base64.b64encode(bytes(60)), bits=0))
        for _ in range(40):
            remote.session.say(frame(0, b"A" * 32768, bits=0))
        await remote.session.wait_lost()


@pytest.mark.parametrize(
    ("headers", "status", "why"),
    [
        ({}, 400, "missing upgrade headers"),
        ({"Connection": "Upgrade"}, 400, "missing upgrade headers"),
        ({"Upgrade": "websocket"}, 400, "missing upgrade headers"),
        ({"Connection": "Upgrade", "Upgrade": "h2c"}, 400, "missing upgrade headers"),
        ({"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}, 400, "X-Stream-Protocol-Version is required"),
        (
            {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v99"},
            403,
            "unable to negotiate protocol: client supports [v99]",
        ),
        ({"Connection": "Upgrade", "Upgrade": "websocket"}, 400, "not a WebSocket version 13 request"),
        (
            {
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
                "Sec-WebSocket-Protocol": "v99.channel.k8s.io",
            },
            400,
            "unsupported WebSocket subprotocols [v99.channel.k8s.io]",
        ),
    ],
)
async def test_a_request_that_is_no_upgrade_is_answered_in_words(
    node: Node, headers: dict[str, str], status: int, why: str
) -> None:
    await node.make("c", *SLEEP)
    with pytest.raises(Refused) as refused:
        await node.ask("/exec/default/pod/c?output=1&command=true", headers)
    assert refused.value.status == status
    assert why in refused.value.body.decode()


async def test_a_client_that_opens_no_streams_is_not_waited_for(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "STREAMS_TIMEOUT", 0.1)
    await node.make("c", *SLEEP)
    query = [("output", "1"), ("command", "true")]
    session = await node.connect(SPDY, "/exec/default/pod/c", query)
    async with asyncio.timeout(10):
        assert await session.accept() is None
    session.drop()


@pytest.mark.parametrize("protocol", [SPDY, V4, V5])
async def test_a_flood_of_input_nobody_takes_waits_at_its_sender(
    node: Node, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And when the sender leaves, that is noticed, though nothing of it is read."""
    monkeypatch.setattr(relay, "LAST_WORDS", 0.1)
    monkeypatch.setattr(driver, "GRACE", 0.1)
    await node.make("c", *SLEEP)
    before = resident()
    async with node.command(protocol, "exec", "c", "sh", "-c", "echo up; sleep 1000", stdin=True) as remote:
        await remote.until("stdout", b"up\n")
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while True:
                await remote["stdin"].write(bytes(65536))
                sent += 65536

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await flood()
        reset_when_closed(remote)
    assert sent < 64 << 20
    assert resident() - before < 24 << 20


async def test_a_port_forward_of_more_streams_than_may_be_is_refused_those(node: Node) -> None:
    await node.make("c", *SLEEP)
    session = await node.connect("spdy:portforward.k8s.io", "/portForward/default/pod", [])
    streams = [
        session.open({"streamtype": "error", "port": "1", "requestid": str(number)}) for number in range(2100)
    ]
    async with asyncio.timeout(20):
        assert await streams[-1].read() == b""
    assert not streams[-1].ended, "reset"
    session.drop()


def reset_when_closed(remote: Remote) -> None:
    """Else the kernel goes on, for minutes, offering what has not been taken."""
    assert remote.session._transport
    connection = remote.session._transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def resident() -> int:
    """Bytes of memory this process, which is client and server in one, has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
