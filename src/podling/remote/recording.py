"""What a session showed, as it was shown: a file in asciicast format, version 2 (docs.asciinema.org).

A line of JSON says the size of the terminal, then there is one for each event, `[SECONDS, CODE, DATA]`. Each
is written by itself when it happens, so that the file can be played also when the program was killed.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

FORMAT = 2
OUTPUT, INPUT, RESIZE = "o", "i", "r"
SHOWN = ("TERM", "SHELL")
"""Variables of the environment that a header has."""
DIGITS = 6


class Unrecorded:
    """Keeps nothing."""

    def shown(self, data: bytes, *, raw: bool = False) -> None:
        """What goes to the terminal next, so that whatever was seen is kept; `raw` if a line feed in it leads
        to no first column."""

    def typed(self, data: bytes) -> None: ...

    def sized(self, columns: int, rows: int) -> None: ...


class Recording(Unrecorded):
    """`now` gives seconds that never go back; `keeps_input`: what is typed is kept, too, and with it what
    nobody sees, such as passwords. What cannot be written ends the recording, not the session: see
    `error`."""

    def __init__(
        self,
        descriptor: int,
        size: tuple[int, int],
        *,
        began: float,
        environment: Mapping[str, str],
        command: str = "",
        keeps_input: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor
        self._length = 0
        self._size = size
        self._now, self._start = now, now()
        self._keeps_input = keeps_input
        # A piece may end within a character.
        self._texts = {code: codecs.getincrementaldecoder("utf-8")("replace") for code in (OUTPUT, INPUT)}
        columns, rows = size
        header: dict[str, Any] = {
            "version": FORMAT,
            "width": columns,
            "height": rows,
            "timestamp": int(began),
            "env": {name: environment[name] for name in SHOWN if name in environment},
            **({"command": command} if command else {}),
        }
        self._line(header)

    def shown(self, data: bytes, *, raw: bool = False) -> None:
        self._text(OUTPUT, data if raw else data.replace(b"\n", b"\r\n"))

    def typed(self, data: bytes) -> None:
        if self._keeps_input:
            self._text(INPUT, data)

    def sized(self, columns: int, rows: int) -> None:
        if (columns, rows) != self._size:
            self._size = columns, rows
            self._event(RESIZE, f"{columns}x{rows}")

    def _text(self, code: str, data: bytes) -> None:
        if text := self._texts[code].decode(data):
            self._event(code, text)

    def _event(self, code: str, data: str) -> None:
        self._line([round(self._now() - self._start, DIGITS), code, data])

    def _line(self, said: object) -> None:
        if self.error is not None:
            return
        line = msgspec.json.encode(said) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            self.error = error
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._length)
        else:
            self._length += written


@contextmanager
def recording(
    file: Path, size: tuple[int, int], command: str, *, keeps_input: bool, tell: Callable[[str], None]
) -> Iterator[Recording]:
    """In a new file that only its owner may read. `tell` hears of it, and if it ends early. Raises OSError,
    also where there is a file of that name."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        made = Recording(
            descriptor,
            size,
            began=time.time(),
            environment=os.environ,
            command=command,
            keeps_input=keeps_input,
        )
        try:
            yield made
        finally:
            is_whole = made.error is None
            tell(f"Recorded in {file}." if is_whole else f"{file} ends early: {made.error}")
    finally:
        os.close(descriptor)
