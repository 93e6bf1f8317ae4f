"""What comes in over HTTP, before and after it is a `Request`: its body, which stays in the socket until
somebody wants it, and what is counted against the client when it is not HTTP at all.

A body is taken as it was sent, as Go does: nothing is decompressed, so that little cannot become much. One
that nobody wanted is thrown away, or, when that is too much work, the connection with it: what follows a body
must never be taken for a request.
"""

from __future__ import annotations

import asyncio
import logging
import re
from functools import partial
from http import HTTPStatus

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from podling.apiserver.pipeline import BODY_LIMIT
from podling.apiserver.request.request import Request, Subject
from podling.apiserver.request.response import TEXT
from podling.model.errors import StatusError, bad_request, too_large

BODY_SECONDS = 60.0
"""How long a body may take: what Kubernetes gives a whole request, `--request-timeout`."""
UNWANTED_BYTES = 256 * 1024
"""A body nobody wanted is thrown away up to here, as Go does."""
UNWANTED_SECONDS = 1.0
LONGEST_JUDGED = 8192
"""A longer path is not looked through for broken escapes before it is known who sends it."""

log = logging.getLogger(__name__)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a fault is the program's own. Of a client's it is the client who is told: a stranger must not
    be able to fill the log."""
    fault = record.exc_info[1] if record.exc_info else None
    return not isinstance(fault, HttpProcessingError)


log.addFilter(_is_ours)


class Arrival(web.BaseRequest):
    """A request whose answers do not say what program gave them: Kubernetes' do not."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop(hdrs.SERVER, None)


def arrival(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> Arrival:
    return Arrival(message, payload, protocol, writer, task, asyncio.get_running_loop())


_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def read_request(arrived: web.BaseRequest, body_seconds: float) -> Request | None:
    """The request, with its body still to be read; None when its target is none."""
    target = arrived.raw_path
    if not target.startswith("/"):
        # A proxy is asked with the whole URL.
        target = re.sub("^https?://[^/?]*", "", target)
    path, _, query = target.partition("?")
    if len(path) <= LONGEST_JUDGED and "%" in path and _BROKEN_ESCAPE.search(path):
        return None
    return Request(
        arrived.method,
        path,
        query,
        arrived.headers,
        certificate=_subject(arrived),
        remote=arrived.remote or "",
        read=partial(_body, arrived, body_seconds) if arrived.can_read_body else None,
    )


def not_http(status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> web.Response:
    """What Go's server says to what is no request, before it ends the connection."""
    text = f"{status.value} {status.phrase}"
    answer = web.Response(status=status, text=text, headers={"Content-Type": TEXT})
    answer.force_close()
    return answer


def said_by_go(status: HTTPStatus) -> bytes:
    """`not_http` for a connection on which no request has arrived."""
    text = f"{status.value} {status.phrase}"
    return f"HTTP/1.1 {text}\r\nContent-Type: {TEXT}\r\nConnection: close\r\n\r\n{text}".encode()


async def _body(arrived: web.BaseRequest, seconds: float) -> bytes:
    """The whole body. Raises StatusError 400, 408, 413."""
    if (arrived.content_length or 0) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    if _waits_to_send(arrived):
        await arrived.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body, content = bytearray(), arrived.content
    try:
        async with asyncio.timeout(seconds):
            while not content.at_eof():
                body += await content.readany()
                if len(body) > BODY_LIMIT:
                    raise too_large(BODY_LIMIT)
    except web.RequestPayloadError as error:
        raise bad_request(str(error)) from error
    except TimeoutError:
        raise StatusError(408, "Timeout", f"the body did not arrive within {seconds:g} seconds") from None
    return bytes(body)


async def discarded(arrived: web.BaseRequest) -> bool:
    """Throw away what nobody read of the body; False when there is more, or it does not come, and the
    connection must end."""
    if _waits_to_send(arrived) or (arrived.content_length or 0) > UNWANTED_BYTES:
        return False
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


def _subject(arrived: web.BaseRequest) -> Subject | None:
    certificate = arrived.get_extra_info("peercert")
    return certificate["subject"] if certificate else None
