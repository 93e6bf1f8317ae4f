"""Disk usage: what a file system has left, and what a directory takes of it.

A pod may have so many files that walking them takes minutes. `Measured` therefore remembers sizes, and leaves
directories that take long to a thread of its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from stat import S_ISBLK, S_ISDIR
from threading import Lock, Thread
from time import monotonic
from typing import NamedTuple

import msgspec

from podling.kubelet.files.descriptors import DIRECTORY
from podling.kubelet.files.tree import walk

BLOCK = 512
REMEMBERED_SECONDS = 60.0
"""How long a measured size is used; Kubernetes' kubelet measures volumes once a minute, too."""
PATIENCE = 0.2
"""Seconds that a caller waits for a measurement; the rest is done in the background."""


class FileSystem(NamedTuple):
    """Bytes and inodes of a file system; free ones as for users other than root."""

    capacity: int
    available: int
    inodes: int
    inodes_free: int


class Used(NamedTuple):
    """Bytes (of whole blocks) and inodes."""

    size: int
    inodes: int


NOTHING = Used(0, 0)


def file_system(path: Path) -> FileSystem:
    """Raises OSError."""
    found = os.statvfs(path)
    return FileSystem(
        found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_ffree
    )


class VolumeUse(NamedTuple):
    """Of a volume that outlives its pod: bytes and inodes, zero where nobody knows them."""

    capacity: int = 0
    available: int = 0
    used: int = 0
    inodes: int = 0
    inodes_free: int = 0
    inodes_used: int = 0
    abnormal: bool | None = None
    """Whether its driver says that something is wrong with it; None if it does not say."""


def volume_use(path: Path) -> VolumeUse:
    """Of the file system at `path`, or of a block device. Raises OSError."""
    if S_ISBLK(path.stat().st_mode):
        with path.open("rb") as device:
            return VolumeUse(device.seek(0, os.SEEK_END))
    found = os.statvfs(path)
    return VolumeUse(
        capacity=found.f_blocks * found.f_frsize,
        available=found.f_bavail * found.f_frsize,
        used=(found.f_blocks - found.f_bfree) * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
        inodes_used=found.f_files - found.f_ffree,
    )


def used(directory: Path) -> Used:
    """What a directory tree uses. Hard links count once; other mounts, and files that disappear meanwhile, do
    not count. Linear in the number of files; only those with several names are remembered."""
    return max(measuring(directory), default=NOTHING)


def measuring(directory: Path) -> Generator[Used]:
    """What is used, as found so far: a growing value for each file."""
    # OSError: the directory does not exist, or no descriptor is left to open it.
    with suppress(OSError), ExitStack() as held:
        top = os.open(directory, DIRECTORY)
        held.callback(os.close, top)
        state = os.fstat(top)
        blocks, inodes = state.st_blocks, 1
        yield Used(blocks * BLOCK, inodes)
        seen: set[int] = set()
        for _, _, found in walk(top, forgiving=True):
            if found.st_dev != state.st_dev or found.st_ino in seen:
                continue
            if found.st_nlink > 1 and not S_ISDIR(found.st_mode):
                seen.add(found.st_ino)
            blocks += found.st_blocks
            inodes += 1
            yield Used(blocks * BLOCK, inodes)


class _Known(msgspec.Struct):
    """What is known of one directory."""

    used: Used
    at: float | None = None
    """When it was measured, in seconds of the timer; None while it is being measured."""


class Measured:
    """Directory sizes, remembered for `seconds`. Thread-safe.

    A directory that takes longer than `patience` is measured by one background thread, in turn with others of
    its kind; until then `used` returns the earlier size, or what has been found so far. The thread is a
    daemon, so it does not hold up the end of the process."""

    def __init__(
        self,
        seconds: float = REMEMBERED_SECONDS,
        timer: Callable[[], float] = monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._seconds = seconds
        self._timer = timer
        self._patience = patience
        self._lock = Lock()
        self._known: dict[Path, _Known] = {}
        self._slow: deque[tuple[Path, _Known]] = deque()
        self._thread: Thread | None = None

    def used(self, directory: Path) -> Used:
        """What the directory takes, at most `seconds` old; waits no longer than `patience`."""
        now = self._timer()
        with self._lock:
            known = self._known.get(directory)
            if known is not None and not self._is_old(known, now):
                return known.used
            # Directories that nobody has asked for in a while may be gone.
            self._known = {path: kept for path, kept in self._known.items() if not self._is_old(kept, now)}
            known = self._known[directory] = _Known(known.used if known else NOTHING)
        until, whole = monotonic() + self._patience, NOTHING
        with closing(measuring(directory)) as found:
            for so_far in found:
                whole = so_far
                if monotonic() > until:
                    known.used = max(known.used, whole)
                    break
            else:
                known.used, known.at = whole, self._timer()
                return known.used
        # The background thread walks it from the beginning, as a waiting walk would hold descriptors.
        with self._lock:
            self._slow.append((directory, known))
            if self._thread is None:
                self._thread = Thread(target=self._walk_slow, name="disk-usage", daemon=True)
                self._thread.start()
        return known.used

    def _is_old(self, known: _Known, now: float) -> bool:
        return known.at is not None and now - known.at >= self._seconds

    def _walk_slow(self) -> None:
        while True:
            with self._lock:
                if not self._slow:
                    self._thread = None
                    return
                directory, known = self._slow.popleft()
            whole = NOTHING
            for whole in measuring(directory):
                # Updated on the way: a limit that is exceeded already is seen before the walk ends.
                known.used = max(known.used, whole)
            known.used, known.at = whole, self._timer()
