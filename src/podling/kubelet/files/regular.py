"""Opening a regular file at a path that a pod can write to.

The file is first opened with O_PATH and checked, and then opened again through that descriptor, so that it
cannot be replaced in between. Opening a pipe or a device would block for ever or have side effects.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path


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
