"""Finding and removing mounts below a directory, through the C library because Python has no call for it."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

from podling.process.mountinfo import MOUNTINFO, read_mounts

_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def mounts_under(directory: Path, table: Path = MOUNTINFO) -> list[Path]:
    """Mount points below `directory` (itself included), deepest and newest first, so that each can be
    unmounted."""
    points = [mounted.place for mounted in reversed(read_mounts(table))]
    return [point for point in points if point.is_relative_to(directory)]


def unmount(point: Path) -> None:
    """Detach a mount at once (MNT_DETACH), in use or not. Raises OSError."""
    _check(_libc.umount2(os.fsencode(point), _MNT_DETACH), point)


def overlay_works(directory: Path) -> bool:
    """Whether an overlay with its layers in `directory` can be mounted: some containers and file systems do
    not allow it."""
    with tempfile.TemporaryDirectory(dir=directory) as name:
        base = Path(name)
        for part in ("lower", "upper", "work", "merged"):
            (base / part).mkdir()
        options = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"
        merged = base / "merged"
        if _libc.mount(b"overlay", os.fsencode(merged), b"overlay", 0, os.fsencode(options)) != 0:
            return False
        unmount(merged)
        return True


def _check(result: int, path: Path) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
