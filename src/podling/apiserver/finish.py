"""The last step of every answer: common headers, warnings, YAML or indented JSON, compression."""

from __future__ import annotations

import asyncio
import zlib

import msgspec
import yaml

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import YAML
from podling.apiserver.request.request import PARSED_AS_TRUE
from podling.apiserver.request.response import JSON, Layout, Response
from podling.model.codec.yaml import Dumper

COMPRESS_ABOVE = 128 * 1024
"""Bytes from which on a body is compressed, as in kube-apiserver."""
COMPRESS_LEVEL = 1
SHORT = 16 * 1024
"""Bytes that are rewritten faster than a thread could be asked to do it."""
MOST_WARNED, LONGEST_WARNING = 4096, 256
"""Characters of all warnings together, and of each one if they exceed that."""
GZIP_FORMAT = 16 + zlib.MAX_WBITS

SHOWING = ("curl", "Wget", "Mozilla/5.0")
"""How the `User-Agent` of programs begins that show answers to people, who get indented JSON."""


def finish(context: RequestContext, response: Response) -> bool:
    """Set the headers. True if the body must be rewritten as well."""
    headers, body = response.headers, response.body
    headers["Audit-Id"] = context.audit_id
    if "Cache-Control" not in headers:
        headers["Cache-Control"] = "no-cache, private"
    if context.flow_headers:
        headers.update(context.flow_headers)
    if context.warnings:
        headers["Warning"] = ", ".join(map(warning, bounded(context.warnings)))
    if not isinstance(body, bytes):
        return False
    if is_restyled(context, response):
        return True
    if body and response.layout is Layout.OBJECT and response.content_type.startswith(JSON):
        response.end = b"\n"
    return len(body) > COMPRESS_ABOVE and is_compressed(context)


async def rewrite(context: RequestContext, response: Response) -> None:
    """Write the body as YAML or indented, and compress it; a long one in a thread, so that the loop
    goes on."""
    if not isinstance(body := response.body, bytes) or not body:
        return
    if len(body) > SHORT:
        response.body = await asyncio.to_thread(_rewritten, context, response, body)
    else:
        response.body = _rewritten(context, response, body)


def is_restyled(context: RequestContext, response: Response) -> bool:
    """Whether JSON is to be YAML, or indented: if the query says `pretty`, or the program shows answers to
    people."""
    if response.layout is not Layout.OBJECT or not response.content_type.startswith(JSON):
        return response.layout is Layout.INDENTED
    if context.wanted.media_type == YAML or context.wanted.pretty:
        return True
    if context.query and (asked := context.query.get("pretty", ("",))[0]):
        return asked in PARSED_AS_TRUE
    return context.request.headers.get("User-Agent", "").startswith(SHOWING)


def is_compressed(context: RequestContext) -> bool:
    return accepts_gzip(context.request.headers.get("Accept-Encoding", ""))


def _rewritten(context: RequestContext, response: Response, body: bytes) -> bytes:
    if is_restyled(context, response):
        if response.layout is Layout.OBJECT and context.wanted.media_type == YAML:
            body = yaml.dump(msgspec.json.decode(body), Dumper=Dumper).encode()
            response.content_type = YAML + response.content_type.removeprefix(JSON)
        else:
            body = msgspec.json.format(body, indent=2)
    if len(body) <= COMPRESS_ABOVE or not is_compressed(context):
        return body
    response.headers["Content-Encoding"] = "gzip"
    vary = response.headers.get("Vary")
    response.headers["Vary"] = f"Accept-Encoding, {vary}" if vary else "Accept-Encoding"
    end, response.end = response.end, b""
    return gzip(body + end)


def accepts_gzip(accept_encoding: str) -> bool:
    """As Kubernetes reads it: not where it is said with a quality."""
    return any(clause.strip() == "gzip" for clause in accept_encoding.split(","))


def gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(COMPRESS_LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    return compressor.compress(data) + compressor.flush()


def bounded(texts: list[str]) -> list[str]:
    """Without duplicates. If they have more than MOST_WARNED characters together, each is cut to
    LONGEST_WARNING, and those after that many characters are left out, as in Kubernetes."""
    known = list(dict.fromkeys(texts))
    if sum(map(len, known)) <= MOST_WARNED:
        return known
    told, length = [], 0
    for text in known:
        if length >= MOST_WARNED:
            break
        told.append(text[:LONGEST_WARNING])
        length += len(told[-1])
    return told


def warning(text: str) -> str:
    """One warning-value of RFC 7234: code, no agent, quoted text without control characters."""
    quoted = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
