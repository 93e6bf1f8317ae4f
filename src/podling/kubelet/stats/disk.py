"""Disk: how much of a file system is left, and how much a directory takes of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from stat import S_ISDIR
from time import monotonic
from typing import NamedTuple

from podling.kubelet.files.tree import walk
from podling.kubelet.files.way import DIRECTORY

BLOCK = 512
REMEMBERED_SECONDS = 60.0
"""How long a directory is not measured again; Kubernetes' kubelet measures volumes once a minute, too."""


class FileSystem(NamedTuple):
    """Bytes and inodes: all, and free to anyone."""

    capacity: int
    available: int
    inodes: int
    inodes_free: int


class Used(NamedTuple):
    size: int
    inodes: int


NOTHING = Used(0, 0)


def file_system(path: Path) -> FileSystem:
    """Raises OSError."""
    found = os.statvfs(path)
    return FileSystem(
        found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_ffree
    )


def used(directory: Path) -> Used:
    """Blocks and inodes, those with several names once, of that one mount only; what goes away meanwhile is
    nothing. Linear, and it remembers only files that have several names."""
    try:
        top = os.open(directory, DIRECTORY)
    except OSError:
        return NOTHING
    try:
        return _used(top)
    finally:
        os.close(top)


def _used(top: int) -> Used:
    state = os.fstat(top)
    blocks, inodes = state.st_blocks, 1
    seen: set[int] = set()
    for _, _, found in walk(top, forgiving=True):
        if found.st_dev != state.st_dev or found.st_ino in seen:
            continue
        if found.st_nlink > 1 and not S_ISDIR(found.st_mode):
            seen.add(found.st_ino)
        blocks += found.st_blocks
        inodes += 1
    return Used(blocks * BLOCK, inodes)


class Measured:
    """Remembers what directories take, so that whoever asks often does not have them walked often."""

    def __init__(self, seconds: float = REMEMBERED_SECONDS, timer: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._timer = timer
        self._known: dict[Path, tuple[float, Used]] = {}

    def used(self, directory: Path) -> Used:
        now = self._timer()
        known = self._known.get(directory)
        if known is None or now - known[0] >= self._seconds:
            self._forget(now)
            known = self._known[directory] = now, used(directory)
        return known[1]

    def _forget(self, now: float) -> None:
        """What nobody has asked for in a while may not be there any more."""
        self._known = {path: known for path, known in self._known.items() if now - known[0] < self._seconds}
