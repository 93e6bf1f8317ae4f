"""Disk: how much of a file system is left, and how much a directory takes of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

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
    """Blocks and inodes, those with several names once, of that one file system only; what goes away
    meanwhile is nothing."""
    try:
        top = directory.lstat()
    except OSError:
        return NOTHING
    seen = {top.st_ino: top.st_blocks}
    for entry in _below(directory, top.st_dev):
        seen[entry.st_ino] = entry.st_blocks
    return Used(sum(seen.values()) * BLOCK, len(seen))


def _below(directory: Path, device: int) -> Iterator[os.stat_result]:
    left = [str(directory)]
    while left:
        try:
            entries = list(os.scandir(left.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if found.st_dev == device:
                yield found
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)


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
