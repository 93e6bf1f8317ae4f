"""Walking and removing a directory tree that a pod may have made.

The time is linear in the number of files, the number of open descriptors does not depend on the depth, no
symbolic link is followed and no mount is entered.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from podling.kubelet.files.descriptors import DIRECTORY, Way

LONGEST_PATH = 4096
"""PATH_MAX: bytes, including the terminating zero."""


class Entry(NamedTuple):
    """A file found by a walk. It may have been replaced since: use its name with `dir_fd` and follow no
    link."""

    directory: int
    """A descriptor, open until the next entry."""
    name: str
    state: os.stat_result


def walk(top: int, *, forgiving: bool = False) -> Iterator[Entry]:
    """All files below the directory `top` (a descriptor); a directory comes after its content.

    Raises OSError, with EBUSY for a mount point. If `forgiving`, it leaves out mount points and what it
    cannot read instead."""
    walking = _Walk(top, forgiving)
    try:
        yield from walking.entries()
    finally:
        walking.close()


class _Walk:
    """`_left` has, for each directory on the way, the names of its subdirectories still to be walked."""

    def __init__(self, top: int, forgiving: bool) -> None:
        self._forgiving = forgiving
        self._mount = mount_of(top)
        self._way = Way(os.open(".", DIRECTORY, dir_fd=top))
        self._left: list[list[str]] = []

    def close(self) -> None:
        self._way.close()

    def entries(self) -> Iterator[Entry]:
        yield from self._files()
        while self._left[-1] or self._way.depth:
            if self._left[-1]:
                try:
                    self._way.down(_opened(self._way.here, self._left[-1][-1], self._mount))
                except OSError:
                    if not self._forgiving:
                        raise
                    self._left[-1].pop()
                else:
                    yield from self._files()
                continue
            self._left.pop()
            try:
                self._way.up()
            except OSError:
                # The directory above was moved: the walk cannot go on.
                if not self._forgiving:
                    raise
                return
            yield from self._entry(self._left[-1].pop())

    def _files(self) -> Iterator[Entry]:
        """Yield files while the directory is read, as it may have more names than fit in memory."""
        directories: list[str] = []
        with os.scandir(self._way.here) as found:
            for each in found:
                if each.is_dir(follow_symlinks=False):
                    directories.append(each.name)
                else:
                    yield from self._entry(each.name)
        self._left.append(directories)

    def _entry(self, name: str) -> Iterator[Entry]:
        here = self._way.here
        try:
            state = os.stat(name, dir_fd=here, follow_symlinks=False)
        except OSError:
            if not self._forgiving:
                raise
        else:
            yield Entry(here, name, state)


def remove(path: Path) -> None:
    """Remove the directory `path` with its content; fine if it does not exist. Raises OSError, with EBUSY at
    a mount point, behind which nothing is removed."""
    with suppress(FileNotFoundError), ExitStack() as held:
        above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, above)
        top = _opened(above, path.name, mount_of(above))
        held.callback(os.close, top)
        for entry in walk(top):
            if stat.S_ISDIR(entry.state.st_mode):
                os.rmdir(entry.name, dir_fd=entry.directory)
            else:
                os.unlink(entry.name, dir_fd=entry.directory)
        os.rmdir(path.name, dir_fd=above)


def _opened(above: int, name: str, mount: int) -> int:
    found = os.open(name, DIRECTORY, dir_fd=above)
    if mount_of(found) != mount:
        os.close(found)
        raise OSError(errno.EBUSY, "something is mounted there", name)
    return found


def make_directories(path: Path, mode: int = 0o755) -> None:
    """Make `path` and its parents where they are missing. Raises OSError. `Path.mkdir` would recurse once for
    each missing parent, and pods decide how many there are."""
    if len(os.fsencode(path)) >= LONGEST_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path)[:100])
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        return
    except FileNotFoundError:
        for directory in (*reversed(path.parents), path):
            with suppress(FileExistsError):
                os.mkdir(directory, mode)


def mount_of(descriptor: int) -> int:
    """The id of the mount that a file was opened in. It tells a bind mount apart, which the device does
    not."""
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as info:
        return next(int(line[7:]) for line in info if line.startswith(b"mnt_id:"))
