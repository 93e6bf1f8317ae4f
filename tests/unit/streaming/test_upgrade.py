"""Asking a server to upgrade, and understanding every kind of no."""

from __future__ import annotations

import asyncio

import pytest

from podling.streaming.splice import Splice
from podling.streaming.upgrade import (
    Address,
    Refused,
    Upgraded,
    request_head,
    upgrade,
)
from podling.streaming.wire import Disconnected, ProtocolError

YES = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n"


class Collect(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = bytearray()
        self.over = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()


async def ask(answer: bytes, request: bytes = b"GET / HTTP/1.1\r\n\r\n") -> Upgraded:
    """Asks a server that answers `answer`, byte by byte as it were, and closes."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for byte in answer:
            writer.write(bytes((byte,)))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with server:
        return await upgrade(Address(*server.sockets[0].getsockname()), request)


async def test_what_follows_the_101_belongs_to_the_next_protocol() -> None:
    upgraded = await ask(YES + b"first bytes")
    assert upgraded.headers["upgrade"] == "SPDY/3.1"
    collected = Collect()
    upgraded.hand_to(collected)
    await collected.over.wait()
    assert collected.data == b"first bytes"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", 404, b"gone"),
        (
            b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            500,
            b"abc",
        ),
        (b"HTTP/1.0 403 Forbidden\r\n\r\nuntil the end", 403, b"until the end"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nshort", 400, b"short"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b""),
    ],
)
async def test_a_refusal_carries_status_and_body(answer: bytes, status: int, body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        await ask(answer)
    assert (refused.value.status, refused.value.body) == (status, body)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", Disconnected),
        (b"HTTP/1.1 101 Switch", Disconnected),
        (b"SSH-2.0-OpenSSH\r\n\r\n", ProtocolError),
        (b"HTTP/1.1 abc\r\n\r\n", ProtocolError),
        (b"x" * 70_000, ProtocolError),
    ],
)
async def test_what_is_no_answer_is_an_error(answer: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        await ask(answer)


async def test_nobody_listening_is_an_os_error() -> None:
    with pytest.raises(OSError):
        await upgrade(Address("127.0.0.1", 1), b"")


def test_headers_cannot_smuggle_lines() -> None:
    with pytest.raises(ProtocolError):
        request_head("GET", "/", [("X", "a\r\nY: b")])


async def test_handing_over_a_connection_that_is_gone_says_so() -> None:
    upgraded = await ask(YES)
    upgraded.drop()
    splice, _ = Splice.pair()
    upgraded.hand_to(splice)
    await splice.wait_lost()
