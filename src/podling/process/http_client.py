"""HTTP/1.1 as clients speak it (RFC 9112), without sockets: the head of a request as bytes; of an answer's
bytes the head, the body in pieces, and the end.

podling's own, because commands wait for its import: it takes a tenth of a library's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import NamedTuple

MAX_HEAD = 64 * 1024
"""Bytes of a head, of what follows a chunked body, and of the line before a chunk."""
MAX_DIGITS = 16
"""Of a length."""
SWITCHING, NO_CONTENT, NOT_MODIFIED = 101, 204, 304
END = b"\r\n"


class Malformed(OSError):
    """What came is no HTTP, or what was to be sent."""


class Incomplete(OSError):
    """The server ended the connection in the middle of its answer."""


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Raises Malformed for what would be more than one header, or another request."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if " " in target or not (target.isascii() and target.isprintable()):
        raise Malformed(f"{target!r} cannot be asked for")
    if any(mark in line for line in lines for mark in "\r\n\0"):
        raise Malformed("a line break within a header")
    return "\r\n".join([*lines, "", ""]).encode()


class Headers(Mapping[str, str]):
    """By their names in any case; what was said several times is joined by commas (RFC 9110, 5.2)."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def add(self, name: str, value: str) -> None:
        known = name.title()
        self._said[known] = f"{self._said[known]}, {value}" if known in self._said else value

    def __getitem__(self, name: str) -> str:
        return self._said[name.title()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)


class Head(NamedTuple):
    status: int
    headers: Headers
    is_current: bool = True
    """Whether its version is 1.1, in which connections are kept."""


class Over:
    """That the answer has come to its end."""


OVER = Over()
Event = Head | bytes | Over
_Reading = Generator[Event | None, None, None]
_Line = Generator[None, None, bytes]


class AnswerReader:
    """One answer. `is_kept`: the connection can have another request after it."""

    def __init__(self) -> None:
        self.is_kept = False
        self.has_begun = False
        self._come = bytearray()
        self._has_ended = False
        self._events = self._read()

    def receive(self, data: bytes) -> None:
        """b"" is the end of the connection."""
        self._come += data
        self._has_ended = self._has_ended or not data

    def next(self) -> Event | None:
        """None until more has come. Raises Malformed, Incomplete."""
        return next(self._events)

    def rest(self) -> bytes:
        """What came after its end."""
        return bytes(self._come)

    def _read(self) -> _Reading:
        while True:
            head = yield from self._head()
            # 102 and the like come before the answer.
            if head.status >= 200 or head.status == SWITCHING:
                break
        self.has_begun = True
        yield head
        is_kept = head.is_current
        if head.status not in (SWITCHING, NO_CONTENT, NOT_MODIFIED):
            if (coding := head.headers.get("Transfer-Encoding")) is not None:
                if coding.strip().lower() != "chunked":
                    raise Malformed(f"the transfer encoding {coding!r}, which nobody asked for")
                yield from self._chunks()
            elif (length := head.headers.get("Content-Length")) is not None:
                yield from self._exactly(_length(length))
            else:
                is_kept = False
                yield from self._all()
        closes = "close" in (word.strip().lower() for word in head.headers.get("Connection", "").split(","))
        self.is_kept = is_kept and not closes and not self._come
        yield OVER

    def _head(self) -> Generator[None, None, Head]:
        first = yield from self._line(MAX_HEAD)
        version, _, line = first.partition(b" ")
        status = line[:3]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit() or line[3:4] not in (b"", b" "):
            raise Malformed(f"not an HTTP answer: {first[:80]!r}")
        headers, room = Headers(), MAX_HEAD - len(first)
        while line := (yield from self._line(room)):
            room -= len(line)
            name, colon, value = line.partition(b":")
            if not colon or not name or name.strip() != name:
                raise Malformed(f"not a header: {line[:80]!r}")
            headers.add(name.decode("latin-1"), value.strip(b" \t").decode("latin-1"))
        return Head(int(status), headers, version == b"HTTP/1.1")

    def _chunks(self) -> _Reading:
        while True:
            line = yield from self._line(MAX_HEAD)
            size = line.partition(b";")[0].strip()
            if not size or len(size) > MAX_DIGITS or size.strip(b"0123456789abcdefABCDEF"):
                raise Malformed(f"not the length of a chunk: {line[:80]!r}")
            if (length := int(size, 16)) == 0:
                break
            yield from self._exactly(length)
            if (yield from self._line(len(END))):
                raise Malformed("a chunk is longer than it said")
        room = MAX_HEAD
        while line := (yield from self._line(room)):
            room -= len(line)

    def _exactly(self, length: int) -> _Reading:
        while length:
            if not self._come:
                yield from self._more()
            piece = bytes(self._come[:length])
            del self._come[:length]
            length -= len(piece)
            yield piece

    def _all(self) -> _Reading:
        while self._come or not self._has_ended:
            piece = bytes(self._come)
            self._come.clear()
            yield piece or None

    def _line(self, most: int) -> _Line:
        looked = 0
        while (end := self._come.find(END, looked)) < 0:
            looked = max(0, len(self._come) - 1)
            if looked > most:
                break
            yield from self._more()
        if not 0 <= end <= most:
            raise Malformed("endless headers")
        line = bytes(self._come[:end])
        del self._come[: end + len(END)]
        return line

    def _more(self) -> Generator[None, None, None]:
        had = len(self._come)
        while len(self._come) == had:
            if self._has_ended:
                raise Incomplete("the server ended the connection in the middle of its answer")
            yield None


def _length(text: str) -> int:
    """Raises Malformed, also for two that differ."""
    said = {word.strip() for word in text.split(",")}
    length = said.pop()
    if said or not (length.isascii() and length.isdecimal()) or len(length) > MAX_DIGITS:
        raise Malformed(f"not the length of a body: {text[:80]!r}")
    return int(length)
