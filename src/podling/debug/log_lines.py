"""The lines of a container's log, each once, however often the log must be asked for again.

A log is asked for with its times, and again from the second of the last line that came: the API knows no
finer beginning. What of that second has come already is told by its number of lines; where the file was
rotated meanwhile, so that the second begins with another line, by the time of the last.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

LONGEST = 1024 * 1024
"""Bytes of a line that are kept until it is complete; of a longer one the parts are given on."""
SECOND = len("2006-01-02T15:04:05")
TOLD = 256
"""Bytes by which lines of the same time are told apart."""


class Part(NamedTuple):
    """Of a line, most often all of it. `stamp` is its time as the server wrote it; `text` has the newline if
    the line has one."""

    stamp: str
    text: bytes
    is_start: bool = True


class _Key(NamedTuple):
    """What tells a line: its time in UTC, which sorts as text, and the sum of how it begins."""

    time: str
    sum: int


class _Open(NamedTuple):
    """A line that has come in part: `seen` bytes of it, after which `drop` bytes were given on before."""

    key: _Key
    stamp: str
    seen: int
    drop: int
    is_shown: bool


class Lines:
    """Takes the bytes of one answer after the other, with times, and returns what was not there yet."""

    def __init__(self) -> None:
        self._rest = b""
        self._open: _Open | None = None
        self._torn: _Open | None = None
        self._second = ""
        self._first: _Key | None = None
        self._count = 0
        self._last = ""
        self._begins = False
        self._skip = 0
        self._by_time = False

    @property
    def since(self) -> str:
        """From when to ask next, as the API takes it; empty before the first line."""
        return f"{self._second}Z" if self._second else ""

    def begin(self) -> None:
        """Another answer begins, from `since` on."""
        self._torn = self._open if self._open and self._open.is_shown else self._torn
        self._rest, self._open = b"", None
        self._begins, self._skip, self._by_time = self._first is not None, 0, False

    def feed(self, piece: bytes) -> Iterator[Part]:
        *lines, self._rest = (self._rest + piece if self._rest else piece).split(b"\n")
        for line in lines:
            yield from self._take(line + b"\n", is_end=True)
        if len(self._rest) > LONGEST:
            rest, self._rest = self._rest, b""
            yield from self._take(rest, is_end=False)

    def end(self) -> Iterator[Part]:
        """The answer is complete, so that its last line is, too, even without a newline."""
        rest, self._rest = self._rest, b""
        if rest:
            yield from self._take(rest, is_end=True)

    def _take(self, line: bytes, *, is_end: bool) -> Iterator[Part]:
        if before := self._open:
            yield from self._go_on(before, line, is_end=is_end)
            return
        said, _, text = line.partition(b" ")
        stamp = said.decode("ascii", errors="replace").rstrip("\n")
        key = _Key(_utc(stamp), zlib.crc32(text[:TOLD]))
        is_shown = self._is_new(key)
        given = 0
        if is_shown and self._torn and self._torn.key == key:
            given, self._torn = self._torn.seen + self._torn.drop, None
        if not is_end:
            self._open = _Open(key, stamp, len(text), max(0, given - len(text)), is_shown)
        elif is_shown:
            self._note(key)
        if is_shown and (rest := text[given:]):
            yield Part(stamp, rest, is_start=not given)

    def _go_on(self, before: _Open, line: bytes, *, is_end: bool) -> Iterator[Part]:
        """With the rest of a long line."""
        drop = max(0, before.drop - len(line))
        self._open = None if is_end else before._replace(seen=before.seen + len(line), drop=drop)
        if not before.is_shown:
            return
        if rest := line[before.drop :]:
            yield Part(before.stamp, rest, is_start=False)
        if is_end:
            self._note(before.key)

    def _is_new(self, key: _Key) -> bool:
        if self._begins:
            self._begins = False
            if key == self._first:
                self._skip = self._count
            else:
                self._by_time, self._first, self._count = True, key, 0
        if self._skip:
            self._skip -= 1
            return False
        if self._by_time and key.time <= self._last:
            self._count += 1
            return False
        self._by_time = False
        return True

    def _note(self, key: _Key) -> None:
        second = key.time[:SECOND]
        if second > self._second:
            self._second, self._first, self._count = second, key, 0
        self._count += key.time >= self._second
        self._last = max(self._last, key.time)


def _utc(stamp: str) -> str:
    """The time in UTC without its zone, to the nanosecond; what is no time stays as it is."""
    if stamp.endswith("Z"):
        return stamp[:-1]
    try:
        zoned = datetime.fromisoformat(stamp[:SECOND] + stamp[-6:]).astimezone(UTC)
    except ValueError:
        return stamp
    return zoned.strftime("%Y-%m-%dT%H:%M:%S") + stamp[SECOND:-6]
