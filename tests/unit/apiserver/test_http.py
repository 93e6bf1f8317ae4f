"""The way from sockets to the pipeline and back, over real loopback connections."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podling.apiserver.http import listening, tls_context
from podling.apiserver.request import Request
from podling.apiserver.response import Response
from podling.pki import Authority


class Echo:
    """A pipeline that says what it heard."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.closed = asyncio.Event()
        self.ended = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        match request.path:
            case "/stream":
                return Response(200, self._stream())
            case "/upgrade":
                return Response(101, Takeover())
        return Response(200, f"{request.method} {request.path}?{request.query}".encode(), "text/plain")

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"first\n"
            await self.ended.wait()
            yield b"last\n"
        finally:
            self.closed.set()


class Takeover:
    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=418, text=f"taken over from {request.method}")


@asynccontextmanager
async def serving(echo: Echo, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    async with listening(echo.handle, "127.0.0.1", 0, tls, end_streams=echo.ended.set) as port:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_request_arrives_as_it_was_sent(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        target = aiohttp.client.URL(f"{url}/api/a%3Ab?x=%2C&y", encoded=True)
        answer = await session.post(target, data=b"body", headers={"X-Y": "z"})
        assert await answer.text() == "POST /api/a%3Ab?x=%2C&y"
    (request,) = echo.requests
    assert request.body == b"body" and request.headers.get("x-y") == "z" and request.certificate is None


async def test_a_body_is_read_just_above_the_limit(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        with suppress(aiohttp.ClientError):
            await session.post(url, data=io.BytesIO(b"x" * (8 << 20)))
    assert 3 << 20 < len(echo.requests[0].body) < 4 << 20


async def test_a_client_may_ask_before_it_sends(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answer = await session.post(url, data=b"body", expect100=True)
        assert answer.status == 200
    assert echo.requests[0].body == b"body"


async def test_a_stream_is_sent_as_it_comes_and_ends_with_the_server(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answer = await session.get(f"{url}/stream")
        assert await answer.content.readline() == b"first\n"
    assert await answer.content.read() == b"last\n"


async def test_a_stream_is_closed_when_its_reader_goes(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answer = await session.get(f"{url}/stream")
        await answer.content.readline()
        answer.close()
        await echo.closed.wait()


async def test_a_connection_is_handed_on(session: aiohttp.ClientSession) -> None:
    async with serving(Echo()) as url:
        answer = await session.post(f"{url}/upgrade")
        assert (answer.status, await answer.text()) == (418, "taken over from POST")


@pytest.fixture
def authority(tmp_path: Path) -> Callable[[str], Authority]:
    return lambda name: Authority(tmp_path / name, datetime.now(UTC))


def client_tls(authority: Authority, user: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca.certificate))
    if user:
        pair = authority.client(user, user, ["group"])
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def test_client_certificates(session: aiohttp.ClientSession, authority: Any) -> None:
    """R-SYS-4: one of ours names the user, none is a stranger, one of another authority gets no answer."""
    ours, other = authority("ours"), authority("other")
    pair = ours.server("server", "server", ["127.0.0.1"])
    echo = Echo()
    async with serving(echo, tls_context(pair.certificate, pair.key, ours.ca.certificate)) as url:
        await session.get(url, ssl=client_tls(ours, "alice"))
        await session.get(url, ssl=client_tls(ours))
        theirs = client_tls(other, "mallory")
        theirs.load_verify_locations(ours.ca.certificate)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url, ssl=theirs)
    alice, stranger = echo.requests
    assert alice.certificate == ((("organizationName", "group"),), (("commonName", "alice"),))
    assert stranger.certificate is None


async def test_a_port_in_use(session: aiohttp.ClientSession) -> None:
    async with serving(Echo()) as url:
        with pytest.raises(OSError, match="address already in use"):
            async with listening(
                Echo().handle, "127.0.0.1", int(url.rpartition(":")[2]), None, end_streams=lambda: None
            ):
                pass
