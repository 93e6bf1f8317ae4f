"""Opening what is inside a volume, and nothing else, whatever its containers do to the volume meanwhile.

The path is walked one name at a time from the volume's own descriptor and no name is ever followed as a link
by the kernel: what is opened is what was looked at. Links are read and walked in the same way, so they may
lead about in the volume; an absolute one, or one that climbs above the volume, leads out of it. A mount of it
is refused; whoever reads a file takes the volume for all there is, like a process that has it as its root.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from podling.kubelet.volumes.payload import VolumeError

LONGEST_CHAIN = 40
"""Links on the way, after which the kernel too says that they go in circles."""
_MADE = 0o750
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(volume: Path, sub_path: str) -> Iterator[int]:
    """A descriptor (O_PATH) of the file or directory at `sub_path`; directories are made where nothing is.

    Raises VolumeError when the path leads out of the volume, and OSError."""
    walk = _Walk(volume, sub_path)
    try:
        yield walk.to_its_end()
    finally:
        walk.close()


@contextmanager
def opened_file(volume: Path, path: str) -> Iterator[BinaryIO]:
    """The regular file at `path`, to be read. A pipe or device is none: waiting for it could last for ever.

    Raises VolumeError and OSError."""
    walk = _WalkAsRoot(volume, path)
    try:
        found = walk.to_its_end()
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise VolumeError(f"{path} is not a regular file")
        # By its descriptor: by now its name may be another's.
        with open(f"/proc/self/fd/{found}", "rb") as file:
            yield file
    finally:
        walk.close()


class _Walk:
    """`_way` are the descriptors of the directories from the volume down to where the walk is."""

    def __init__(self, volume: Path, sub_path: str) -> None:
        self._volume = volume
        self._sub_path = sub_path
        self._names = list(reversed(PurePosixPath(sub_path).parts))
        self._links = 0
        # The volume itself may be reached over links: they are the node's.
        self._way = [os.open(volume, os.O_PATH | os.O_CLOEXEC)]

    def to_its_end(self) -> int:
        while self._names:
            self._step(self._names.pop())
        return self._way[-1]

    def close(self) -> None:
        for descriptor in self._way:
            os.close(descriptor)

    def _step(self, name: str) -> None:
        # Two slashes at the beginning are a part of their own, too.
        if name.startswith("/"):
            self._to_root()
            return
        if name == "..":
            self._up()
            return
        found = self._look(name)
        if not stat.S_ISLNK(os.fstat(found).st_mode):
            self._way.append(found)
            return
        try:
            self._follow(os.readlink("", dir_fd=found))
        finally:
            os.close(found)

    def _to_root(self) -> None:
        raise self._outside()

    def _up(self) -> None:
        if len(self._way) == 1:
            raise self._outside()
        os.close(self._way.pop())

    def _look(self, name: str) -> int:
        try:
            return os.open(name, _LOOK, dir_fd=self._way[-1])
        except FileNotFoundError:
            return self._make(name)

    def _make(self, name: str) -> int:
        here = self._way[-1]
        os.mkdir(name, _MADE, dir_fd=here)
        made = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=here)
        # As open as the volume is: the pod may run as any user.
        os.chmod(f"/proc/self/fd/{made}", stat.S_IMODE(os.fstat(self._way[0]).st_mode))
        return made

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > LONGEST_CHAIN:
            raise VolumeError(f"subpath {self._sub_path}: too many levels of symbolic links")
        self._names.extend(reversed(PurePosixPath(target).parts))

    def _outside(self) -> VolumeError:
        return VolumeError(f"subpath {self._sub_path} not within volume path {self._volume}")


class _WalkAsRoot(_Walk):
    """Nothing is above the volume, absolute links start in it, and what is missing stays missing."""

    def _to_root(self) -> None:
        while len(self._way) > 1:
            os.close(self._way.pop())

    def _up(self) -> None:
        if len(self._way) > 1:
            os.close(self._way.pop())

    def _make(self, name: str) -> int:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._sub_path)
