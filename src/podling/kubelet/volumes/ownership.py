"""`securityContext.fsGroup`: a volume's files belong to the group and the group may use them.

Set once, before any container has the files, and by descriptor: what is changed is what was looked at, never
what its name leads to by then. `fsGroupChangePolicy` says nothing about volumes that live as long as their
pod.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from podling.kubelet.files.tree import mount_of, walk
from podling.kubelet.files.way import DIRECTORY, LOOK

_READ_WRITE = 0o660
_READ_ONLY = 0o440
_DIRECTORY = stat.S_ISGID | 0o110


def set_group(volume: Path, gid: int, *, read_only: bool = False) -> None:
    """The whole tree; of links only the group, they have no mode. Directories also pass the group on to what
    is made in them. Raises OSError."""
    mode = _READ_ONLY if read_only else _READ_WRITE
    top = os.open(volume, DIRECTORY)
    try:
        mount = mount_of(top)
        for entry in walk(top):
            _set_one(entry.directory, entry.name, gid, mode, mount)
        _set_found(top, gid, mode)
    finally:
        os.close(top)


def _set_one(directory: int, name: str, gid: int, mode: int, mount: int) -> None:
    found = os.open(name, LOOK, dir_fd=directory)
    try:
        if mount_of(found) != mount:
            raise OSError(errno.EBUSY, "something is mounted there", name)
        if stat.S_ISLNK(os.fstat(found).st_mode):
            os.chown(name, -1, gid, dir_fd=directory, follow_symlinks=False)
        else:
            _set_found(found, gid, mode)
    finally:
        os.close(found)


def _set_found(found: int, gid: int, mode: int) -> None:
    path = f"/proc/self/fd/{found}"
    os.chown(path, -1, gid)
    state = os.fstat(found).st_mode
    os.chmod(path, stat.S_IMODE(state) | mode | (_DIRECTORY if stat.S_ISDIR(state) else 0))
