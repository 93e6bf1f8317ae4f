"""The terminal of this end: its size and what is shown on it. `keyboard.py` has what is typed."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from podling.model.codec.quoting import printable
from podling.remote.recording import Unrecorded

NOT_RECORDED = Unrecorded()


class Size(NamedTuple):
    columns: int
    rows: int


USUAL = Size(80, 24)
"""Where no terminal says otherwise."""


def is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def size(descriptor: int) -> Size | None:
    """None where the terminal does not know."""
    try:
        found = os.get_terminal_size(descriptor)
    except OSError:
        return None
    return Size(found.columns, found.lines) if found.columns and found.lines else None


def write(descriptor: int, data: bytes) -> None:
    """All of it, also to a terminal or pipe that takes it in pieces. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Narrator:
    """Says on standard error what goes on; `recording` keeps it."""

    def __init__(self, *, quiet: bool = False, recording: Unrecorded = NOT_RECORDED) -> None:
        self._quiet = quiet
        self.recording = recording
        self.is_live = not quiet and is_terminal(2) and os.environ.get("TERM") != "dumb"
        """Whether anybody sees what is waited for."""
        self._shown = ""

    def now(self, line: str) -> None:
        """What is waited for, on a terminal, where the next line replaces it."""
        if self.is_live and line != self._shown:
            self._shown = line
            width = (size(2) or USUAL).columns - 1
            shown = printable(line.replace("\n", " "))
            self._write(f"\r\x1b[2K{shown[:width]}")

    def say(self, line: str) -> None:
        """What stays to be read."""
        self.clear()
        if not self._quiet:
            self._write(f"{printable(line)}\n")

    def clear(self) -> None:
        if self._shown:
            self._write("\r\x1b[2K")
        self._shown = ""

    def _write(self, text: str) -> None:
        self.recording.shown(text.encode())
        sys.stderr.write(text)
        sys.stderr.flush()
