"""One log as it is read: its older parts, oldest first, then the file that is being written, and on into the
next one when that is rotated. Whoever reads on misses nothing, however often it is rotated meanwhile.
"""

from __future__ import annotations

import gzip
import io
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from podling.kubelet.files.regular import looked_at, open_regular
from podling.kubelet.log_rotation.parts import COMPRESSED, moment_of, parts
from podling.kubelet.serving.log_format import tail_offset

READ = 256 * 1024
NANO = 1_000_000_000


class LogFile:
    """`tail_lines` leaves out all but the last, `since` (ns since the epoch) parts that ended before. Raises
    OSError when there is no log."""

    def __init__(self, path: Path, tail_lines: int | None = None, since: int = 0) -> None:
        self._path = path
        self._file, older = self._open()
        self._seen = {moment_of(part.name) for part in older}
        self._older: deque[BinaryIO] = deque()
        self._before: BinaryIO = io.BytesIO()
        if tail_lines is None:
            self._queue(part for part in older if _ended(part) >= since / NANO)
        else:
            self._seek_tail(older, tail_lines)

    def rotated(self) -> bool:
        """Whether another file has taken the name since."""
        with suppress(FileNotFoundError):
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        return False

    def reopen(self) -> None:
        """What was open, and all that came between, is read before the next."""
        self._older.append(cast(BinaryIO, self._file))
        self._file, older = self._open()
        fresh = [part for part in older if moment_of(part.name) not in self._seen]
        self._seen.update(moment_of(part.name) for part in fresh)
        # The first of them is the one that was open.
        self._queue(iter(fresh[1:]))

    def read(self) -> bytes:
        """The next of it; empty at the end of what there is."""
        while self._older:
            if data := self._older[0].read(READ):
                return data
            self._leave(self._older.popleft())
        late = self._before.read(READ)
        if late:
            return late
        data = self._file.read(READ) or b""
        return self._before.read() + data if data else data

    def _leave(self, part: BinaryIO) -> None:
        """It has been read. The last before the file stays open: a runtime makes the next file before it lets
        go of this one, and may have a line left for it."""
        self._before.close()
        self._before = part

    def close(self) -> None:
        for part in (*self._older, self._before, self._file):
            part.close()

    def _open(self) -> tuple[io.FileIO, list[Path]]:
        """The file that has the name now, and the parts before it. One that is renamed in between is both,
        and counts as the file."""
        file = open_regular(self._path)
        names = parts(self._path.name, os.listdir(self._path.parent))
        older = [self._path.with_name(name) for name in names]
        return file, [part for part in older if not _is(part, file)]

    def _queue(self, older: Iterator[Path]) -> None:
        for part in older:
            # One that is gone, or no file, is no part.
            with suppress(OSError):
                self._older.append(_opened(part))

    def _seek_tail(self, older: list[Path], lines: int) -> None:
        """Back through the parts until there are enough lines."""
        missing = _tail(cast(BinaryIO, self._file), lines)
        for part in reversed(older):
            if missing <= 0:
                break
            with suppress(OSError):
                opened = _opened(part)
                tail = _compressed_tail if part.suffix == COMPRESSED else _tail
                missing = tail(opened, missing)
                self._older.appendleft(opened)


def _tail(file: BinaryIO, lines: int) -> int:
    """Go to where the last `lines` begin; how many more there would have to be."""
    start = file.seek(tail_offset(file, lines))
    if start:
        return 0
    found = sum(block.count(b"\n") for block in iter(lambda: file.read(READ), b""))
    file.seek(0)
    return lines - found


def _compressed_tail(file: BinaryIO, lines: int) -> int:
    """As `_tail`, of what can be read only forwards. It is read twice rather than kept."""
    found, last = 0, b""
    while block := file.read(READ):
        found, last = found + block.count(b"\n"), block[-1:]
    file.seek(0)
    # A last line may lack its end.
    skipped = found + (last not in (b"", b"\n")) - lines
    if skipped <= 0:
        return lines - found
    offset = 0
    while block := file.read(READ):
        here = block.count(b"\n")
        if here >= skipped:
            at = -1
            for _ in range(skipped):
                at = block.find(b"\n", at + 1)
            file.seek(offset + at + 1)
            break
        skipped, offset = skipped - here, offset + len(block)
    return 0


def _opened(part: Path) -> BinaryIO:
    if part.suffix != COMPRESSED:
        return cast(BinaryIO, open_regular(part))
    with looked_at(part) as found:
        return cast(BinaryIO, gzip.open(found, "rb"))


def _is(part: Path, file: io.FileIO) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(part.stat(), os.fstat(file.fileno()))
    return False


def _ended(part: Path) -> float:
    """When it was last written, in seconds since the epoch."""
    with suppress(FileNotFoundError):
        return part.stat().st_mtime
    return 0.0
