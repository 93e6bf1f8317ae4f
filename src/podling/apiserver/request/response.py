"""An answer: bytes, a stream of bytes, or a function that takes over the connection.

`failure` is the one place where an error becomes an answer, a meta/v1 Status with the error's code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import msgspec

from podling.apiserver.request.request import Request
from podling.model.codec.quoting import quoted
from podling.model.errors import GenericError, StatusError

if TYPE_CHECKING:
    from aiohttp import web

NO_CONTENT = 204
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
NOT_SNIFFED = {"X-Content-Type-Options": "nosniff"}
_HARMLESS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_encode = msgspec.json.Encoder().encode


class Upgrade(Protocol):
    """An answer that takes over the connection, such as exec. `run` returns once it is done with it."""

    async def run(self, request: web.BaseRequest) -> web.StreamResponse: ...


Body = bytes | AsyncGenerator[bytes, None] | Upgrade


class Layout(Enum):
    """How Kubernetes writes JSON."""

    OBJECT = 0
    """In one line with its end, or as the client asks for it: indented without that, or as YAML."""
    INDENTED = 1
    """Whatever the client asks for."""
    DOCUMENT = 2
    """As it is."""


class Response(msgspec.Struct):
    """One answer. A generator's pieces are sent as they come; it is closed if the client disconnects."""

    status: int
    body: Body = b""
    content_type: str = JSON
    headers: dict[str, str] = {}
    layout: Layout = Layout.OBJECT
    end: bytes = b""
    """What is sent behind a body of bytes, which may be long and is not copied for it."""


Handle = Callable[[Request], Awaitable[Response]]
"""The API server as a function, for whatever delivers requests to it."""


def failure(error: StatusError) -> Response:
    """The Status of `error` as an answer, with its headers and the `Retry-After` that it calls for."""
    response = Response(error.code, _encode(error.status()), JSON, {**error.headers})
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


class MethodNotSupported(GenericError):
    """405: the path exists, but not for this method. The header `Allow` names those it exists for."""

    def __init__(self, methods: Iterable[str]) -> None:
        super().__init__(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
        )
        self.headers = {"Allow": ", ".join(sorted(set(methods)))}


def no_such_page() -> Response:
    """404 in plain text for a path that the API does not have, as in Kubernetes."""
    return Response(404, b"404 page not found\n", TEXT, {**NOT_SNIFFED})


def internal_error(request: Request, why: str) -> Response:
    """500 in plain text, where there is no saying what was asked for, as in Kubernetes."""
    target = f"{request.path}?{request.query}" if request.query else request.path
    said = f"Internal Server Error: {quoted(target)}: {why}".translate(_HARMLESS)
    return Response(500, f"{said}\n".encode(), TEXT, {**NOT_SNIFFED})
