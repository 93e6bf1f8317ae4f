"""Bodies that a proxy passes on: as they come, however long, both ways, until either side goes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podling.apiserver.connect.kubelet import KubeletProxy
from podling.apiserver.connect.kubelets import Kubelets
from podling.apiserver.http.server import listening
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, request_info
from podling.apiserver.request.response import Response, failure
from podling.model.errors import StatusError
from podling.model.types.node import DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeStatus
from podling.streaming.driver import Factory, connect_within

PIECE = bytes(64 * 1024)
LONG = 200_000_000
UNDER_WAY = 16 * 1024 * 1024
"""Bytes that may be in buffers between client and target, the kernel's included."""
PORT = 10250
NODE = Node(
    status=NodeStatus(
        addresses=[NodeAddress(type="InternalIP", address="127.0.0.1")],
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=PORT)),
    )
)
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def find_node(type: type[Any], namespace: str, name: str) -> Any:
    return NODE if type is Node else None


@asynccontextmanager
async def proxied_to(target: Handler) -> AsyncIterator[str]:
    """A URL whose requests are passed on to it."""
    kubelet = web.Server(target, handler_cancellation=True)

    async def connect(client: Factory) -> asyncio.Transport:
        return await connect_within(kubelet, client)

    kubelets = Kubelets(ssl.create_default_context)
    proxy = KubeletProxy(find_node, kubelets)

    async def handle(request: Request) -> Response:
        info = request_info(request.method, request.path, {})
        try:
            return await proxy(RequestContext(request, "audit", datetime.now(UTC), {}, info), NODE)
        except StatusError as error:
            return failure(error)

    with kubelets.join("127.0.0.1", PORT, connect):
        async with listening(handle, "127.0.0.1", 0, None, end_streams=lambda: None) as port:
            yield f"http://127.0.0.1:{port}/api/v1/nodes/n/proxy/upload"
    await kubelet.shutdown(1)


class Counted:
    """A body of `length` bytes, and how much of it has been asked for and has come to its end."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.sent = self.received = self.most_under_way = 0

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        while self.sent < self.length:
            piece = PIECE[: self.length - self.sent]
            self.sent += len(piece)
            self.most_under_way = max(self.most_under_way, self.sent - self.received)
            yield piece

    async def read(self, content: aiohttp.StreamReader) -> None:
        async for piece in content.iter_any():
            self.received += len(piece)


@pytest.mark.parametrize("headers", [{}, {"Content-Length": str(LONG)}, {"Expect": "100-continue"}])
async def test_a_long_body_is_passed_on_as_it_comes(headers: dict[str, str]) -> None:
    body = Counted(LONG)
    heard: dict[str, str] = {}

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        heard.update(request.headers)
        await body.read(request.content)
        return web.Response(status=201)

    async with proxied_to(target) as url, aiohttp.ClientSession() as session:
        async with session.post(url, data=body.pieces(), headers=headers) as answer:
            assert answer.status == 201
        async with session.post(url, data=b"and another") as answer:
            assert answer.status == 201
    assert body.received == LONG + len(b"and another")
    assert body.most_under_way < UNDER_WAY
    assert "Expect" not in heard


async def test_who_sends_waits_for_who_reads() -> None:
    body, may_read = Counted(LONG), asyncio.Event()

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        await may_read.wait()
        await body.read(request.content)
        return web.Response()

    async def until_nothing_moves() -> None:
        before = -1
        while before != body.sent:
            before = body.sent
            for _ in range(100):
                await asyncio.sleep(0)

    async def post(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(url, data=body.pieces()) as answer:
            assert answer.status == 200

    async with proxied_to(target) as url, asyncio.TaskGroup() as tasks:
        tasks.create_task(post(url))
        await until_nothing_moves()
        assert 0 < body.sent < UNDER_WAY
        may_read.set()
    assert body.received == LONG


async def test_a_long_answer_is_passed_on_as_it_is_read() -> None:
    body = Counted(LONG)

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        async for piece in body.pieces():
            await answer.write(piece)
        return answer

    async with (
        proxied_to(target) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as answer,
    ):
        await body.read(answer.content)
    assert body.received == LONG and body.most_under_way < UNDER_WAY


async def test_both_ways_at_once() -> None:
    said: asyncio.Queue[bytes] = asyncio.Queue()

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        async for piece in request.content.iter_any():
            await answer.write(piece.upper())
        return answer

    async def pieces() -> AsyncGenerator[bytes, None]:
        while piece := await said.get():
            yield piece

    async with proxied_to(target) as url, aiohttp.ClientSession() as session:
        said.put_nowait(b"one")
        async with session.post(url, data=pieces()) as answer:
            assert await answer.content.readany() == b"ONE"
            said.put_nowait(b"two")
            assert await answer.content.readany() == b"TWO"
            said.put_nowait(b"")
            assert await answer.content.readany() == b""


async def test_a_client_that_goes_takes_the_request_with_it() -> None:
    came, left = asyncio.Event(), asyncio.Event()

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        try:
            await request.content.readany()
            came.set()
            await request.content.read()
        finally:
            left.set()
        return web.Response()

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"one"
        await asyncio.Event().wait()

    async def post(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(url, data=pieces()):
            pass

    async with proxied_to(target) as url, asyncio.TaskGroup() as tasks:
        posting = tasks.create_task(post(url))
        await came.wait()
        posting.cancel()
        async with asyncio.timeout(5):
            await left.wait()


async def test_a_target_that_goes_is_said_and_sent_no_more() -> None:
    body = Counted(LONG)

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        await request.content.readany()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with proxied_to(target) as url, aiohttp.ClientSession() as session:
        try:
            async with session.post(url, data=body.pieces()) as answer:
                assert answer.status == 503
                assert "error trying to reach service" in await answer.text()
        except aiohttp.ClientOSError:
            pass  # The connection was closed while the client was still sending: it has not read the answer.
    assert body.sent < UNDER_WAY


@pytest.mark.parametrize("length", [100_000, LONG])
async def test_an_answer_before_the_body_is_read_is_the_answer(length: int) -> None:
    body = Counted(length)

    async def target(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=413)

    async with proxied_to(target) as url, aiohttp.ClientSession() as session:
        async with session.post(url, data=body.pieces()) as answer:
            assert answer.status == 413
        async with session.post(url, data=b"another") as answer:
            assert answer.status == 413
    assert body.sent < UNDER_WAY
