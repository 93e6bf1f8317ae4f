"""The last step of every answer: the headers all of them carry, YAML for those who asked, compression."""

from __future__ import annotations

import asyncio
import zlib

import msgspec
import yaml

from podling.apiserver.context import RequestContext
from podling.apiserver.negotiation import YAML
from podling.apiserver.response import JSON, Response

COMPRESS_ABOVE = 128 * 1024
COMPRESS_LEVEL = 1
GZIP_FORMAT = 16 + zlib.MAX_WBITS


def finish(context: RequestContext, response: Response) -> bool:
    """Whether the body is to be compressed as well."""
    headers = response.headers
    headers["Audit-Id"] = context.audit_id
    headers["Cache-Control"] = "no-cache, private"
    if context.warnings:
        headers["Warning"] = ", ".join(map(warning, context.warnings))
    if not isinstance(response.body, bytes):
        return False
    if context.wanted.media_type == YAML and response.content_type == JSON:
        response.body = yaml.safe_dump(msgspec.json.decode(response.body), sort_keys=False).encode()
        response.content_type = YAML
    if len(response.body) <= COMPRESS_ABOVE:
        return False
    return accepts_gzip(context.request.headers.get("Accept-Encoding", ""))


async def compress(response: Response) -> None:
    """In a thread, since zlib lets others run and this is milliseconds for a long list."""
    if isinstance(response.body, bytes):
        response.body = await asyncio.to_thread(gzip, response.body)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"


def accepts_gzip(accept_encoding: str) -> bool:
    clauses = (clause.replace(" ", "") for clause in accept_encoding.split(","))
    return any(
        clause == "gzip" or (clause.startswith("gzip;") and clause != "gzip;q=0") for clause in clauses
    )


def gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(COMPRESS_LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    return compressor.compress(data) + compressor.flush()


def warning(text: str) -> str:
    """One warning-value of RFC 7234: code, no agent, quoted text without control characters."""
    quoted = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
