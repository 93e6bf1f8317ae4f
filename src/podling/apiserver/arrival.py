"""What comes in over HTTP, before and after it is a `Request`: read whole, and counted against the client
when it is not HTTP at all.

A body is taken as it was sent, as Go does: nothing is decompressed, so that little cannot become much.
"""

from __future__ import annotations

import asyncio
import logging

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from podling.apiserver.pipeline import BODY_LIMIT
from podling.apiserver.request import Request, Subject

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


async def read_request(arrived: web.BaseRequest) -> Request:
    path, _, query = arrived.raw_path.partition("?")
    body = await _body(arrived) if arrived.can_read_body else b""
    return Request(
        arrived.method,
        path,
        query,
        arrived.headers,
        body,
        certificate=_subject(arrived),
        remote=arrived.remote or "",
    )


async def _body(arrived: web.BaseRequest) -> bytes:
    """The body, cut off just above the limit: enough for the pipeline to refuse it."""
    if arrived.headers.get("Expect", "").lower() == "100-continue":
        await arrived.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = bytearray()
    async for piece in arrived.content.iter_any():
        body += piece
        if len(body) > BODY_LIMIT:
            break
    return bytes(body)


def _subject(arrived: web.BaseRequest) -> Subject | None:
    certificate = arrived.get_extra_info("peercert")
    return certificate["subject"] if certificate else None
