"""Files that a pod may replace at any time, held by descriptors: opening a regular file, and going down a
directory, however deep it is.

A regular file is first opened with O_PATH and checked, and then opened again through that descriptor, so that
it cannot be replaced in between. Opening a pipe or a device would block for ever or have side effects.

On a `Way`, each name is resolved in the open directory above it and never as a symbolic link. Renaming a
directory meanwhile can change what is found, but cannot lead the kubelet out of the tree. A pod decides how
deep its directories are, and all pods share the descriptors of one process. So only the KEPT lowest
directories stay open. A higher one is opened again on the way up, as the parent of the directory below it,
and only if it is still the same directory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

KEPT = 64
"""How many directories are open at a time."""
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(path: Path, *, follow: bool = False) -> FileIO:
    """Open it for reading; with `follow` the name may be a symbolic link. Raises OSError, with EINVAL for
    anything but a regular file."""
    with looked_at(path, follow=follow) as found:
        return FileIO(found)


@contextmanager
def looked_at(path: Path, *, follow: bool = False) -> Iterator[str]:
    """A path of the regular file at `path` that still means this file when `path` is replaced. Raises as
    `open_regular`."""
    links = 0 if follow else os.O_NOFOLLOW
    found = os.open(path, os.O_PATH | links | os.O_CLOEXEC)
    try:
        yield name_of(found, str(path))
    finally:
        os.close(found)


def name_of(found: int, path: str) -> str:
    """The path of the file behind a descriptor opened with O_PATH, valid while that is open. Raises OSError,
    with EINVAL for anything but a regular file; `path` is for its message."""
    if not stat.S_ISREG(os.fstat(found).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return f"/proc/self/fd/{found}"


class Way:
    """A path that begins at `top`, a descriptor that is closed with the way. It never leads above `top`."""

    def __init__(self, top: int) -> None:
        self._open = deque([top])
        self._closed: list[tuple[int, int]] = []

    @property
    def here(self) -> int:
        return self._open[-1]

    @property
    def depth(self) -> int:
        """0 at the top."""
        return len(self._closed) + len(self._open) - 1

    def down(self, below: int) -> None:
        """Go to `below`, a descriptor of something in `here`; the way closes it from now on."""
        self._open.append(below)
        if len(self._open) > KEPT:
            above = self._open.popleft()
            self._closed.append(_identity(above))
            os.close(above)

    def up(self) -> None:
        """Go to the parent. Raises OSError (ESTALE) if the directories were moved; the way is then closed."""
        assert self.depth, "nothing is above the top"
        below = self._open.pop()
        try:
            if not self._open:
                above = os.open("..", LOOK | os.O_DIRECTORY, dir_fd=below)
                if _identity(above) != self._closed.pop():
                    os.close(above)
                    raise OSError(errno.ESTALE, "a directory was moved while it was walked")
                self._open.append(above)
        finally:
            os.close(below)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
