"""HTTP requests as they come from a socket: how they become a `Request`, and the answers to malformed ones.

A body stays in the socket until the request is authorized; then it is read whole, or passed on by a proxy as
it comes. It is not decompressed, as in Go, so that a small body cannot become a large one. A body that nobody
read is discarded, and if that is too much work, the connection is closed: the bytes of a body must never be
taken for the next request.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncGenerator
from functools import partial
from http import HTTPStatus

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy

from podling.apiserver.request.request import BODY_LIMIT, Certificate, Request
from podling.apiserver.request.response import TEXT
from podling.model.errors import StatusError, bad_request, too_large
from podling.process.tls import lifetime, verified_chain
from podling.streaming.driver import receive_much
from podling.streaming.wire import Disconnected

BODY_SECONDS = 60.0
"""How long a body may take: kube-apiserver's `--request-timeout`, which it gives a whole request."""
CHUNKED = "chunked"
UNWANTED_BYTES = 256 * 1024
"""Up to so many bytes of a body that nobody read are discarded, as in Go."""
UNWANTED_SECONDS = 1.0
"""How long discarding a body may take."""
LONGEST_JUDGED = 8192
"""A longer path is not searched for broken escapes, since its sender is not yet authenticated."""

_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[0-9A-Za-z!$%&'()*+,.:;=\[\]_~-]*")
_NO_TRAILERS = frozenset({"transfer-encoding", "trailer", "content-length"})
_CONTINUES = re.compile(r"(?:^|[ ,\t])100-continue(?:$|[ ,\t])", re.IGNORECASE)

log = logging.getLogger(__name__)


# Malformed requests are answered and not logged: otherwise any client could fill the log.
log.addFilter(lambda entry: not (entry.exc_info and isinstance(entry.exc_info[1], HttpProcessingError)))


class HttpRequest(web.BaseRequest):
    """A request whose answers have no `Server` header: those of Kubernetes have none."""

    @property
    def spoken(self) -> HttpVersion:
        """What the client speaks: `version` is what the answer does."""
        return self._message.version

    def answer_in_11(self) -> None:
        """As Go's server does that has not understood the client. To be called before `version` is read."""
        self._version = HttpVersion11

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop(hdrs.SERVER, None)


def http_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> HttpRequest:
    return HttpRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())


def certificate_of(transport: asyncio.BaseTransport) -> Certificate | None:
    """What the client of a connection has shown in the handshake."""
    told = transport.get_extra_info("peercert")
    if not told:
        return None
    encoded, *issuers = chain = verified_chain(transport.get_extra_info("ssl_object"))
    digest = hashlib.sha256(encoded).hexdigest()
    return Certificate(told["subject"], encoded, tuple(issuers), digest, lifetime(chain))


def read_request(
    arrived: web.BaseRequest,
    body_seconds: float,
    certificate: Certificate | None,
    address: str,
    *,
    is_ascii: bool,
) -> Request | None:
    """The request, whose body is still to be read; None if its path has a broken percent escape. `is_ascii`:
    its head is known to be."""
    target, headers = arrived.raw_path, arrived.headers
    if not is_ascii and not "".join(headers.values()).isascii():
        headers = CIMultiDictProxy(CIMultiDict((name, _text(value)) for name, value in headers.items()))
    if not target.startswith("/"):
        # The absolute form (RFC 9112, 3.2.2), as clients send it to a proxy.
        target = re.sub("^https?://[^/?]*", "", target)
    path, _, query = target.partition("?")
    if len(path) <= LONGEST_JUDGED and "%" in path and _BROKEN_ESCAPE.search(path):
        return None
    request = Request(arrived.method, path, query, headers, certificate=certificate, remote=address)
    if arrived.can_read_body:
        request.read = partial(_body, arrived, body_seconds)
        request.pieces = partial(_pieces, arrived)
    return request


def _text(value: str) -> str:
    """What JSON can hold of it, as Go writes it: aiohttp keeps bytes that are no UTF-8 as lone surrogates."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


def refusal(arrived: HttpRequest) -> web.Response | None:
    """What Go's server answers by itself to a request that aiohttp takes."""
    version, headers = arrived.spoken, arrived.headers
    if version == HttpVersion11 and headers.get(hdrs.TRANSFER_ENCODING, CHUNKED).lower() != CHUNKED:
        return not_http(HTTPStatus.NOT_IMPLEMENTED, text="Unsupported transfer encoding")
    if hdrs.TRAILER in headers and hdrs.TRANSFER_ENCODING in headers:
        named = ",".join(headers.getall(hdrs.TRAILER)).lower().split(",")
        if not _NO_TRAILERS.isdisjoint(map(str.strip, named)):
            return not_http()
    if version not in (HttpVersion11, HttpVersion10):
        arrived.answer_in_11()
        return not_http(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "unsupported protocol version")
    if _HOST.fullmatch(headers.get(hdrs.HOST, "")) is None:
        return not_http(HTTPStatus.BAD_REQUEST, "malformed Host header")
    if (expected := headers.get(hdrs.EXPECT)) and _CONTINUES.search(expected) is None:
        answer = web.Response(status=HTTPStatus.EXPECTATION_FAILED)
        answer.force_close()
        return answer
    return None


def not_http(status: HTTPStatus = HTTPStatus.BAD_REQUEST, why: str = "", *, text: str = "") -> web.Response:
    """The answer of Go's server to a malformed request; the connection is closed after it."""
    reason = f"{status.phrase}: {why}" if why else status.phrase
    text = text or f"{status.value} {reason}"
    answer = web.Response(status=status, reason=reason, text=text, headers={"Content-Type": TEXT})
    answer.force_close()
    return answer


def said_by_go(status: HTTPStatus) -> bytes:
    """`not_http` as bytes, for a connection without a request that aiohttp could answer."""
    text = f"{status.value} {status.phrase}"
    return f"HTTP/1.1 {text}\r\nContent-Type: {TEXT}\r\nConnection: close\r\n\r\n{text}".encode()


async def _body(arrived: web.BaseRequest, seconds: float) -> bytes:
    """The whole body. Raises StatusError 400, 408, 413."""
    if (arrived.content_length or 0) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    await _let_it_be_sent(arrived)
    body, content = bytearray(), arrived.content
    # A timer costs more than reading a short body, and most have arrived together with their head.
    patience = None if content.is_eof() else seconds
    try:
        async with asyncio.timeout(patience):
            while not content.at_eof():
                body += await content.readany()
                if len(body) > BODY_LIMIT:
                    raise too_large(BODY_LIMIT)
    except web.RequestPayloadError as error:
        raise bad_request(str(error)) from error
    except TimeoutError:
        raise StatusError(408, "Timeout", f"the body did not arrive within {seconds:g} seconds") from None
    return bytes(body)


async def _pieces(arrived: web.BaseRequest) -> AsyncGenerator[bytes, None]:
    """The body as it comes. Raises Disconnected if it breaks off."""
    await _let_it_be_sent(arrived)
    if arrived.transport is not None:
        receive_much(arrived.transport.get_extra_info("socket"))
    try:
        async for piece in arrived.content.iter_any():
            yield piece
    except (web.RequestPayloadError, OSError) as error:
        raise Disconnected(f"the body broke off: {error}") from error


async def _let_it_be_sent(arrived: web.BaseRequest) -> None:
    if _waits_to_send(arrived):
        await arrived.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def discarded(arrived: web.BaseRequest) -> bool:
    """Discard what nobody read of the body. False if the connection must be closed, because the rest of the
    body is too long or does not arrive in time."""
    if _waits_to_send(arrived) or (arrived.content_length or 0) > UNWANTED_BYTES:
        return False
    # A proxy that was passing the body on has been cancelled, and lets go of it in its next turn.
    await asyncio.sleep(0)
    thrown = 0
    try:
        async with asyncio.timeout(UNWANTED_SECONDS):
            while not arrived.content.at_eof() and thrown <= UNWANTED_BYTES:
                thrown += len(await arrived.content.readany())
    except (TimeoutError, web.RequestPayloadError):
        return False
    return arrived.content.at_eof()


def _waits_to_send(arrived: web.BaseRequest) -> bool:
    return arrived.headers.get("Expect", "").lower() == "100-continue"
