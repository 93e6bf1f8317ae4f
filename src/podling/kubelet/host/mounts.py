"""The mount calls that the kubelet makes itself: tmpfs, bind mount, image overlay, and unmount.

Python's `os` has no mount. The C library's `mount` and `umount2` are called directly, which takes
microseconds; running mount(8) would add milliseconds to the start of every pod that has a secret.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from podling.process.mountinfo import MOUNTINFO, read_mounts

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str, path: Path) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}", str(path))


def mount_tmpfs(path: Path, size_bytes: int | None = None, *, mode: int = 0o777, gid: int = 0) -> None:
    """Mount a new tmpfs at `path`, with `noswap` where the kernel has it (since 6.4). Without a size the
    kernel's default applies (half of memory). `mode` and `gid` are those of its root. Raises OSError."""
    size = [f"mode={mode:o}", f"gid={gid}", *([f"size={size_bytes}"] if size_bytes else [])]
    if _tmpfs(path, [*size, "noswap"]) != 0:
        _check(_tmpfs(path, size), "mount tmpfs", path)


def _tmpfs(path: Path, options: list[str]) -> int:
    result: int = _libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, ",".join(options).encode() or None)
    return result


def bind_mount(source: Path | str, target: Path, *, read_only: bool = False, recursive: bool = False) -> None:
    flags = MS_BIND | (MS_REC if recursive else 0)
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None), "bind mount", target)
    if read_only:
        # The kernel ignores MS_RDONLY when it makes a bind mount; only a remount sets it.
        flags = MS_BIND | MS_REMOUNT | MS_RDONLY
        _check(_libc.mount(None, os.fsencode(target), None, flags, None), "remount", target)


def mount_image(kind: str, source: str, options: Iterable[str], target: Path) -> None:
    """Mount the files of an image read-only, nosuid, nodev and noexec. Raises OSError.

    It is always an overlay without an upper directory, so that no remount makes it writable. An image of one
    layer, which could be a bind mount, becomes an overlay over the empty target."""
    data = ",".join(option for option in options if option not in _FLAGS)
    if kind == "bind":
        data = f"lowerdir={source}:{target}"
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
    result = _libc.mount(b"overlay", os.fsencode(target), b"overlay", flags, data.encode())
    _check(result, "mount image", target)


_FLAGS = frozenset(("ro", "rw"))


def unmount(path: Path) -> None:
    """Unmount what is at `path`; fine if nothing is. Raises OSError."""
    result = _libc.umount2(os.fsencode(path), MNT_DETACH | UMOUNT_NOFOLLOW)
    if result != 0 and ctypes.get_errno() in (errno.EINVAL, errno.ENOENT):
        return
    _check(result, "umount", path)


def mounts_under(path: Path, table: Path = MOUNTINFO) -> list[Path]:
    """Mount points at or below `path`, innermost first, with an entry for each mount stacked on a place. All
    must be found: the files behind one that is missed would be removed with the pod's directory."""
    places = [mounted.place for mounted in read_mounts(table)]
    below = [place for place in places if place.is_relative_to(path)]
    return sorted(below, key=lambda place: len(place.parts), reverse=True)


def unmount_under(path: Path) -> None:
    for place in mounts_under(path.resolve()):
        unmount(place)
