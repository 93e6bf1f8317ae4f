"""The mounts that this process sees: their table (/proc/self/mountinfo, proc(5)), and the calls that make and
remove them.

Python's `os` has no mount. The C library's `mount` and `umount2` are called directly, which takes
microseconds; running mount(8) would add milliseconds to the start of every pod that has a secret.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")

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


class Mounted(NamedTuple):
    """A mount. `options` are those of the file system, not of the mount."""

    place: Path
    kind: str
    options: tuple[str, ...]


def read_mounts(table: Path = MOUNTINFO) -> list[Mounted]:
    """All mounts, in the order they were mounted. Raises OSError."""
    mounts = []
    # Read as bytes, and lines end only at newlines: a mount may be named in any encoding or none, and the
    # kernel escapes only space, tab, newline and backslash.
    for line in filter(None, table.read_bytes().split(b"\n")):
        before, _, after = line.partition(b" - ")
        place = _ESCAPE.sub(lambda escaped: bytes((int(escaped[1], 8),)), before.split(b" ")[4])
        kind, _, options = os.fsdecode(after).split(" ", 2)
        mounts.append(Mounted(Path(os.fsdecode(place)), kind, tuple(options.split(","))))
    return mounts


def mounts_under(path: Path, table: Path = MOUNTINFO) -> list[Path]:
    """Mount points at or below `path`, the newest first, so that each can be unmounted in turn; one for each
    mount stacked on a place. All must be found: the files behind one that is missed would be removed with the
    directory."""
    return [mounted.place for mounted in reversed(read_mounts(table)) if mounted.place.is_relative_to(path)]


def unmount(path: Path) -> None:
    """Detach what is mounted at `path`, in use or not; fine if nothing is. Raises OSError."""
    result = _libc.umount2(os.fsencode(path), MNT_DETACH | UMOUNT_NOFOLLOW)
    if result != 0 and ctypes.get_errno() in (errno.EINVAL, errno.ENOENT):
        return
    _check(result, "umount", path)


def unmount_under(path: Path) -> bool:
    """Unmount all at or below `path`. Whether anything was mounted there. Raises OSError."""
    found = mounts_under(path.resolve())
    for place in found:
        unmount(place)
    return bool(found)


def mount_tmpfs(path: Path, size_bytes: int | None = None, *, mode: int = 0o777, gid: int = 0) -> None:
    """Mount a new tmpfs at `path`, with `noswap` where the kernel has it (since 6.4). Without a size the
    kernel's default applies (half of memory). `mode` and `gid` are those of its root. Raises OSError."""
    options = f"mode={mode:o},gid={gid}" + (f",size={size_bytes}" if size_bytes else "")
    if _mount("tmpfs", path, 0, f"{options},noswap") != 0:
        _check(_mount("tmpfs", path, 0, options), "mount tmpfs", path)


def bind_mount(source: Path | str, target: Path, *, read_only: bool = False, recursive: bool = False) -> None:
    """Show `source` at `target` as well, with what is mounted below it if `recursive`. Raises OSError."""
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
    data = ",".join(option for option in options if option not in ("ro", "rw"))
    if kind == "bind":
        data = f"lowerdir={source}:{target}"
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
    _check(_mount("overlay", target, flags, data), "mount image", target)


def overlay_works(directory: Path) -> bool:
    """Whether an overlay with its layers in `directory` can be mounted: some containers and file systems do
    not allow it."""
    with tempfile.TemporaryDirectory(dir=directory) as name:
        base = Path(name)
        for part in ("lower", "upper", "work", "merged"):
            (base / part).mkdir()
        options = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"
        # Unmounting an overlay writes all of the file system below it to the disk, whosever it is, unless it
        # is volatile (Linux 5.10).
        works = any(_mount("overlay", base / "merged", 0, options + more) == 0 for more in (",volatile", ""))
        if works:
            unmount(base / "merged")
        return works


def _mount(kind: str, target: Path, flags: int, options: str) -> int:
    """Mount a file system that has no device; 0 if it worked."""
    name = kind.encode()
    result: int = _libc.mount(name, os.fsencode(target), name, flags, os.fsencode(options))
    return result


def _check(result: int, what: str, path: Path) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}", str(path))
