"""Opening a path inside a volume, without leaving it, whatever containers do to the volume meanwhile.

The path is walked one name at a time from the volume's own descriptor, and the kernel follows no symbolic
link. Links are read and walked here, so they may lead anywhere inside the volume. A link that is absolute or
climbs above the volume leaves it: `opened`, for mounts, refuses it; `opened_file`, for reading, treats the
volume as the root directory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from podling.kubelet.files.descriptors import LOOK, Way, name_of
from podling.kubelet.files.tree import LONGEST_PATH
from podling.kubelet.volumes.files import VolumeError

LONGEST_CHAIN = 40
"""Symbolic links on the way; the kernel's own limit (ELOOP)."""
_MADE = 0o750


@contextmanager
def opened(volume: Path, sub_path: str) -> Iterator[int]:
    """A descriptor (O_PATH) of the file or directory at `sub_path`; missing directories are made.

    Raises VolumeError if the path leads out of the volume, and OSError."""
    walk = _Walk(volume, sub_path)
    try:
        yield walk.to_its_end()
    finally:
        walk.close()


@contextmanager
def opened_file(volume: Path, path: str) -> Iterator[BinaryIO]:
    """The regular file at `path`, open for reading; the volume is taken as `/`. Raises VolumeError and
    OSError."""
    walk = _WalkAsRoot(volume, path)
    try:
        with open(name_of(walk.to_its_end(), path), "rb") as file:
            yield file
    finally:
        walk.close()


class _Walk:
    """A walk from the volume's top; one step for each name."""

    def __init__(self, volume: Path, sub_path: str) -> None:
        if len(os.fsencode(sub_path)) >= LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if "\0" in sub_path:
            raise VolumeError("no file has a name with a zero byte in it")
        self._volume = volume
        self._sub_path = sub_path
        self._names = list(reversed(PurePosixPath(sub_path).parts))
        # Links on the way to the volume itself are the node's, and may be followed.
        top = os.open(volume, os.O_PATH | os.O_CLOEXEC)
        self._mode = stat.S_IMODE(os.fstat(top).st_mode)
        self._way = Way(top)

    def to_its_end(self) -> int:
        """The descriptor of what the path leads to, valid until `close`. Raises VolumeError and OSError."""
        links = 0
        while self._names:
            name = self._names.pop()
            # Two slashes at the beginning are a part of their own, too.
            if name.startswith("/"):
                self._to_root()
                continue
            if name == "..":
                self._up()
                continue
            try:
                found = os.open(name, LOOK, dir_fd=self._way.here)
            except FileNotFoundError:
                found = self._make(name)
            if not stat.S_ISLNK(os.fstat(found).st_mode):
                self._way.down(found)
                continue
            try:
                target = os.readlink("", dir_fd=found)
            finally:
                os.close(found)
            links += 1
            if links > LONGEST_CHAIN:
                raise VolumeError(f"subpath {self._sub_path}: too many levels of symbolic links")
            self._names.extend(reversed(PurePosixPath(target).parts))
        return self._way.here

    def close(self) -> None:
        self._way.close()

    def _to_root(self) -> None:
        raise self._outside()

    def _up(self) -> None:
        if not self._way.depth:
            raise self._outside()
        self._way.up()

    def _make(self, name: str) -> int:
        here = self._way.here
        os.mkdir(name, _MADE, dir_fd=here)
        made = os.open(name, LOOK | os.O_DIRECTORY, dir_fd=here)
        # With the volume's mode, as the pod may run as any user.
        os.chmod(f"/proc/self/fd/{made}", self._mode)
        return made

    def _outside(self) -> VolumeError:
        return VolumeError(f"subpath {self._sub_path} not within volume path {self._volume}")


class _WalkAsRoot(_Walk):
    """As a process that has the volume as its root: `..` stays in it, absolute links begin in it. Nothing is
    made."""

    def _to_root(self) -> None:
        while self._way.depth:
            self._way.up()

    def _up(self) -> None:
        if self._way.depth:
            self._way.up()

    def _make(self, name: str) -> int:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._sub_path)
