"""Opening a file that somebody else may have put there: a regular one, or none.

It is looked at before it is opened, and what is opened is what was looked at. To open a pipe, or a device,
may last for ever or do something by itself.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path


def open_regular(path: Path | str, *, follow: bool = False, dir_fd: int | None = None) -> FileIO:
    """To be read. `follow`: the name may be a link. Raises OSError, EINVAL for what is no regular file."""
    links = 0 if follow else os.O_NOFOLLOW
    found = os.open(path, os.O_PATH | links | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        return reopened(found, str(path))
    finally:
        os.close(found)


def reopened(found: int, path: str) -> FileIO:
    """The file behind a descriptor that was only looked with (O_PATH), whatever its name has become. Raises
    OSError, EINVAL for what is no regular file; `path` is for its message."""
    if not stat.S_ISREG(os.fstat(found).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return FileIO(f"/proc/self/fd/{found}")
