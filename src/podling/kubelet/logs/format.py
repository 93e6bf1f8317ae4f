"""The CRI log format, from the lines of a file to what a client of the log asked for. Pure.

A line is `<RFC3339Nano> <stdout|stderr> <F|P>[:more tags] <content>`. P (partial) means that the next line of
the same stream continues this one.
"""

from __future__ import annotations

from datetime import datetime
from typing import BinaryIO, NamedTuple

import msgspec

BLOCK = 64 * 1024
LONGEST_LINE = 1024 * 1024
"""Bytes of a line; a longer one is left out. Runtimes split a container's lines after 16 KiB."""
SECONDS = len("2016-10-06T00:17:09")


class LogOptions(msgspec.Struct, frozen=True):
    """PodLogOptions as far as they concern the lines."""

    timestamps: bool = False
    since: int = 0
    """ns since the epoch."""
    limit_bytes: int | None = None
    stream: bytes = b""
    """stdout, stderr, or empty for both."""


class LogLine(NamedTuple):
    """A line as the runtime writes it; `partial` (P) without the end of the container's line."""

    timestamp: bytes
    stream: bytes
    partial: bool
    content: bytes


def parse_line(line: bytes) -> LogLine | None:
    """Parse a line without its line end; None if it does not have the format."""
    parts = line.split(b" ", 3)
    if len(parts) < 4 or parts[1] not in (b"stdout", b"stderr") or parts[2][:1] not in (b"F", b"P"):
        return None
    return LogLine(parts[0], parts[1], parts[2][:1] == b"P", parts[3])


def nanoseconds(timestamp: bytes) -> int | None:
    """An RFC3339Nano timestamp in ns since the epoch; None if it is invalid."""
    text = timestamp.decode(errors="replace")
    seconds, (fraction, zone) = text[:SECONDS], _fraction_and_zone(text)
    try:
        whole = datetime.fromisoformat(seconds + zone)
        return int(whole.timestamp()) * 10**9 + int(fraction.ljust(9, "0")[:9])
    except ValueError:
        return None


def fixed_width(timestamp: bytes) -> bytes:
    """The timestamp with nine digits of fraction: the runtime omits trailing zeros."""
    text = timestamp.decode(errors="replace")
    fraction, zone = _fraction_and_zone(text)
    return f"{text[:SECONDS]}.{fraction:0<9}{zone}".encode()


def _fraction_and_zone(text: str) -> tuple[str, str]:
    rest = text[SECONDS:]
    if not rest.startswith("."):
        return "", rest
    digits = 1
    while digits < len(rest) and rest[digits].isdigit():
        digits += 1
    return rest[1:digits], rest[digits:]


class LogFormatter:
    """Takes the bytes of a log in any pieces and returns what to send. `full` when `limit_bytes` are sent."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._rest = bytearray()
        self._overlong = False
        self._new_line = True
        self._left = options.limit_bytes
        self.full = options.limit_bytes == 0

    def feed(self, data: bytes) -> bytes:
        """What to send for the complete lines so far; an incomplete line waits for its end."""
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > LONGEST_LINE:
                self._rest, self._overlong = bytearray(), True
            return b""
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        if self._overlong:
            lines[0], self._overlong = b"", False
        return self._limited(b"".join([self._shown(line, b"\n") for line in lines]))

    def end(self) -> bytes:
        """What to send for a last line without a line end."""
        rest, self._rest = b"" if self._overlong else bytes(self._rest), bytearray()
        return self._limited(self._shown(rest, b""))

    def _shown(self, raw: bytes, line_end: bytes) -> bytes:
        line, options = parse_line(raw), self._options
        if line is None or (options.stream and line.stream != options.stream):
            return b""
        if options.since and (nanoseconds(line.timestamp) or 0) < options.since:
            return b""
        content = line.content if line.partial else line.content + line_end
        begins, self._new_line = self._new_line, not line.partial
        if options.timestamps and begins:
            return fixed_width(line.timestamp) + b" " + content
        return content

    def _limited(self, shown: bytes) -> bytes:
        if self._left is None:
            return shown
        shown = shown[: self._left]
        self._left -= len(shown)
        self.full = self._left == 0
        return shown


def tail_offset(log: BinaryIO, lines: int) -> int:
    """The offset at which the last `lines` lines begin. Reads from the end."""
    end = position = log.seek(0, 2)
    if lines <= 0:
        return end
    found = 0
    while position > 0:
        start = max(0, position - BLOCK)
        log.seek(start)
        block = log.read(position - start)
        # The line feed that ends the very last line begins none.
        at = len(block) - 1 if position == end and block.endswith(b"\n") else len(block)
        here = block.count(b"\n", 0, at)
        if found + here >= lines:
            for _ in range(lines - found):
                at = block.rfind(b"\n", 0, at)
            return start + at + 1
        found += here
        position = start
    return 0
