"""What is answered: bytes, a stream of bytes, or the connection itself handed on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiohttp import web

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Upgrade(Protocol):
    """An answer that takes the connection over, such as exec. `run` returns when it is done with it."""

    async def run(self, request: web.BaseRequest) -> web.StreamResponse: ...


Body = bytes | AsyncIterator[bytes] | Upgrade


@dataclass(slots=True)
class Response:
    """One answer. An iterator's pieces are sent as they come; it is closed when the client goes away."""

    status: int
    body: Body = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
