"""`securityContext.fsGroup`: a volume's files belong to the group and the group may use them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_READ_WRITE = 0o660
_READ_ONLY = 0o440
_DIRECTORY = stat.S_ISGID | 0o110


def set_group(volume: Path, gid: int, *, read_only: bool = False) -> None:
    """The whole tree, links excepted. Directories also pass the group on to what is made in them."""
    _set_one(volume, gid, read_only)
    for parent, directories, files in os.walk(volume):
        for name in (*directories, *files):
            _set_one(Path(parent, name), gid, read_only)


def has_group(volume: Path, gid: int) -> bool:
    state = volume.stat()
    return state.st_gid == gid and bool(state.st_mode & stat.S_ISGID)


def _set_one(path: Path, gid: int, read_only: bool) -> None:
    if path.is_symlink():
        return
    os.chown(path, -1, gid)
    mode = stat.S_IMODE(path.stat().st_mode) | (_READ_ONLY if read_only else _READ_WRITE)
    path.chmod(mode | _DIRECTORY if path.is_dir() else mode)
