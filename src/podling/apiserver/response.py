"""What is answered: bytes, a stream of bytes, or the connection itself handed on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from podling.apiserver.request import Request

if TYPE_CHECKING:
    from aiohttp import web

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Upgrade(Protocol):
    """An answer that takes the connection over, such as exec. `run` returns when it is done with it."""

    async def run(self, request: web.BaseRequest) -> web.StreamResponse: ...


Body = bytes | AsyncGenerator[bytes, None] | Upgrade


class Response(msgspec.Struct):
    """One answer. A generator's pieces are sent as they come; it is closed when the client goes away."""

    status: int
    body: Body = b""
    content_type: str = JSON
    headers: dict[str, str] = {}


Handle = Callable[[Request], Awaitable[Response]]
"""The whole API server, to whoever brings it requests."""
