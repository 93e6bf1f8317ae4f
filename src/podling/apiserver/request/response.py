"""What is answered: bytes, a stream of bytes, or the connection itself handed on.

The one place where an error becomes an answer: a meta/v1 Status with the error's code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import msgspec

from podling.apiserver.request.request import Request
from podling.model.errors import GenericError, StatusError

if TYPE_CHECKING:
    from aiohttp import web

NO_CONTENT = 204
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


_encode = msgspec.json.Encoder().encode


def failure(error: StatusError) -> Response:
    response = Response(error.code, _encode(error.status()))
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, MethodNotSupported):
        response.headers["Allow"] = error.allowed
    return response


class MethodNotSupported(GenericError):
    """405: the path exists, but not for this method. `allowed` is the header that says which it has."""

    def __init__(self, methods: Iterable[str]) -> None:
        super().__init__(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
        )
        self.allowed = ", ".join(sorted(set(methods)))


def no_such_page() -> Response:
    """404 for a path that no part of the API is at: in plain text, for who asks may be no API client."""
    return Response(404, b"404 page not found\n", TEXT, {"X-Content-Type-Options": "nosniff"})
