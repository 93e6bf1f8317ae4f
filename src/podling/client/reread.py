"""What is made of files, and made again when they are replaced: certificates, keys, tokens.

Whoever renews a credential replaces its file and tells nobody. So whoever is about to show one looks at the
files first: that takes microseconds, and nothing needs to watch or to poll.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

_Stamp = tuple[int, int, int] | None


class Reread(Generic[T]):
    """`make` reads `files`, and raises OSError or ValueError when nothing can be made of them: at first
    whoever makes this hears of it, later what was made before stays in use. Certificate and key are two
    files: between the two writes they do not fit."""

    def __init__(self, files: Sequence[Path], make: Callable[[], T]) -> None:
        self._files = files
        self._make = make
        self._stamps = self._look()
        self._made = make()

    def get(self) -> T:
        stamps = self._look()
        if stamps != self._stamps:
            # What is written from here on changes the stamps once more.
            self._stamps = stamps
            try:
                self._made = self._make()
            except (OSError, ValueError) as error:
                names = ", ".join(str(file) for file in self._files)
                log.warning("what has replaced %s cannot be used, the old stays in use: %s", names, error)
        return self._made

    def _look(self) -> list[_Stamp]:
        return [_stamp(file) for file in self._files]


def _stamp(file: Path) -> _Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
