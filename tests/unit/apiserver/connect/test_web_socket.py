"""What a client hears over a WebSocket; tests/peer holds the same to Kubernetes' own server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, TextMessage

from podling.apiserver.connect.web_socket import LogSocket, WatchSocket
from podling.apiserver.http.server import listening
from podling.apiserver.request.request import Request
from podling.apiserver.request.response import Response
from podling.streaming.wire import Disconnected


async def pieces(*said: bytes) -> AsyncGenerator[bytes, None]:
    for piece in said:
        yield piece


async def heard(response: Response, *, protocols: str = "", origin: str = "") -> tuple[str, list[object]]:
    """The head of the answer, and the messages; last the code of a close."""

    async def handle(_: Request) -> Response:
        return response

    lines = ["GET /log HTTP/1.1", "Host: here", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    lines += [f"Sec-WebSocket-Protocol: {protocols}"] * bool(protocols) + [f"Origin: {origin}"] * bool(origin)
    async with listening(handle, "127.0.0.1", 0, None, end_streams=lambda: None) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        messages: list[object] = []
        frames = Connection(ConnectionType.CLIENT)
        while " 101 " in head and not (messages and isinstance(messages[-1], int)):
            data = await reader.read(65536)
            if not data:
                break
            frames.receive_data(data)
            for event in frames.events():
                if isinstance(event, TextMessage | BytesMessage):
                    messages.append(event.data if isinstance(event.data, str) else bytes(event.data))
                elif isinstance(event, CloseConnection):
                    messages.append(int(event.code))
        writer.close()
    return head, messages


@pytest.mark.parametrize(
    ("protocols", "messages"),
    [
        ("", [b"", b"one\n\xff", b"two", 1000]),
        ("binary.k8s.io", [b"", b"one\n\xff", b"two", 1000]),
        ("base64.binary.k8s.io", ["", "b25lCv8=", "dHdv", 1000]),
        ("unknown, base64.binary.k8s.io", ["", "b25lCv8=", "dHdv", 1000]),
    ],
)
async def test_a_log_is_greeted_sent_and_closed(protocols: str, messages: list[object]) -> None:
    log = Response(101, LogSocket(pieces(b"one\n\xff", b"two")))
    head, found = await heard(log, protocols=protocols)
    assert found == messages
    assert f"Sec-WebSocket-Protocol: {protocols.split(', ')[-1]}\r\n" in head


async def test_no_subprotocol_in_common_is_forbidden() -> None:
    head, _ = await heard(Response(101, LogSocket(pieces(b"x"))), protocols="unknown")
    assert head.startswith("HTTP/1.1 403 ")


async def test_a_log_that_breaks_off_is_not_closed_as_if_it_were_whole() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"half"
        raise Disconnected("the kubelet is lost")

    _, found = await heard(Response(101, LogSocket(broken())))
    assert found in ([b"", b"half"], [b""], [])


async def test_each_event_of_a_watch_is_a_message() -> None:
    watch = Response(101, WatchSocket(pieces(b'{"a":1}\n{"b":2}\n', b'{"c":3}\n')))
    head, found = await heard(watch, protocols="any", origin="https://here")
    assert found == ['{"a":1}\n', '{"b":2}\n', '{"c":3}\n', 1000]
    assert "Sec-WebSocket-Protocol: any\r\n" in head


@pytest.mark.parametrize(
    ("protocols", "origin", "status"), [("", "", 403), ("one, other", "https://here", 400)]
)
async def test_a_watch_is_refused(protocols: str, origin: str, status: int) -> None:
    head, _ = await heard(Response(101, WatchSocket(pieces(b"x"))), protocols=protocols, origin=origin)
    assert head.startswith(f"HTTP/1.1 {status} ")


async def test_what_is_sent_ends_when_the_client_leaves() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def handle(_: Request) -> Response:
        return Response(101, LogSocket(endless()))

    async with listening(handle, "127.0.0.1", 0, None, end_streams=lambda: None) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        await reader.readuntil(b"first")
        writer.close()
        async with asyncio.timeout(5):
            await ended.wait()
