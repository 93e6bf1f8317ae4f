"""SPDY/3.1 header blocks: name/value pairs, compressed by one zlib stream per direction for the whole
connection.

The preset dictionary is a constant of the protocol (SPDY/3 draft, section 2.6.10.1): words with their lengths
in front, then a run of text. Its Adler-32 is 0xe3c6a7c2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from podling.streaming.wire import ProtocolError

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date etag "
    "expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since "
    "last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer "
    "retry-after server te trailer transfer-encoding upgrade user-agent vary via warning "
    "www-authenticate method get status 200\xa0OK version HTTP/1.1 url public set-cookie keep-alive "
    "origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 "
    "Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 "
    "Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service "
    "UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat,"
    " Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,"
    "text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,"
    "utf-,*,enq=0."
)
MAX_BLOCK = 64 * 1024
"""Bytes of one header block, inflated: far above any Kubernetes stream's, far below a zip bomb."""


def _counted(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def _dictionary() -> bytes:
    words = (word.replace("\xa0", " ").encode() for word in _WORDS.split(" "))
    return b"".join(map(_counted, words)) + _TEXT.encode()


DICTIONARY = _dictionary()


class HeaderWriter:
    """Compresses header blocks; all of a connection share one zlib stream, so each must be sent in order."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zdict=DICTIONARY)

    def write(self, headers: Mapping[str, str]) -> bytes:
        pairs = (_counted(n.lower().encode()) + _counted(v.encode()) for n, v in headers.items())
        block = struct.pack(">I", len(headers)) + b"".join(pairs)
        return self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """Decompresses header blocks in the order they came; every one must be read, also of refused streams."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, data: bytes) -> dict[str, str]:
        """Raises ProtocolError, also for a block above MAX_BLOCK."""
        try:
            block = self._inflate.decompress(data, MAX_BLOCK)
        except zlib.error as error:
            raise ProtocolError(f"header block: {error}") from error
        if self._inflate.unconsumed_tail:
            raise ProtocolError(f"header block of more than {MAX_BLOCK} bytes")
        return parse_block(block)


def parse_block(block: bytes) -> dict[str, str]:
    """Names as sent, each once; several values of one name (NUL between them) are joined by commas."""
    count, at = _number(block, 0)
    headers: dict[str, str] = {}
    for _ in range(count):
        name, at = _text(block, at)
        value, at = _text(block, at)
        if not name or name != name.lower() or name in headers:
            raise ProtocolError(f"header name {name!r} is empty, not lower case, or repeated")
        headers[name] = value.replace("\0", ",")
    if at != len(block):
        raise ProtocolError("bytes after the last header")
    return headers


def _number(block: bytes, at: int) -> tuple[int, int]:
    if at + 4 > len(block):
        raise ProtocolError("header block ends early")
    return int.from_bytes(block[at : at + 4], "big"), at + 4


def _text(block: bytes, at: int) -> tuple[str, int]:
    length, start = _number(block, at)
    end = start + length
    if end > len(block):
        raise ProtocolError("header block ends early")
    try:
        return block[start:end].decode(), end
    except UnicodeDecodeError as error:
        raise ProtocolError("header is not UTF-8") from error
