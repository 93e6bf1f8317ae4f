"""Replaces the files of a volume atomically: a reader sees either all old files or all new ones.

    <volume>/..2026_11_21_05_10_32.x7f2k1/…    the files, in a directory of their own
    <volume>/..data  ->  ..2026_11_21_05_10_32.x7f2k1    swapped by one rename
    <volume>/key     ->  ..data/key             what containers open

The layout is that of Kubernetes' AtomicWriter, as programs watch `..data` for new content.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath

from podling.kubelet.files.tree import make_directories, remove
from podling.kubelet.volumes.files import Payload

DATA = "..data"
_NEW_DATA = "..data_tmp"


def write(volume: Path, payload: Payload, now: datetime, own: Callable[[Path], None] | None = None) -> bool:
    """Make the volume hold exactly the payload; False if it already does. `own` sets owners and modes of the
    new directory before it is visible. Raises OSError."""
    current = _current(volume)
    if current is not None and _read(current) == _wanted(payload):
        return False
    fresh = Path(tempfile.mkdtemp(prefix=f"..{now:%Y_%m_%d_%H_%M_%S}.", dir=volume))
    fresh.chmod(0o755)
    _write_files(fresh, payload)
    if own is not None:
        own(fresh)
    _swap(volume, fresh.name)
    _link(volume, payload)
    if current is not None:
        remove(current)
    return True


def _current(volume: Path) -> Path | None:
    try:
        return volume / os.readlink(volume / DATA)
    except FileNotFoundError:
        return None


def _wanted(payload: Payload) -> dict[str, bytes]:
    return {str(PurePosixPath(path)): file.data for path, file in payload.items()}


def _read(directory: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = [directory] if directory.is_dir() else []
    while left:
        for entry in list(os.scandir(left.pop())):
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                left.append(path)
            elif entry.is_file(follow_symlinks=False):
                files[path.relative_to(directory).as_posix()] = path.read_bytes()
    return files


def _write_files(directory: Path, payload: Payload) -> None:
    for path, file in payload.items():
        target = directory / path
        make_directories(target.parent)
        target.write_bytes(file.data)
        # The umask must not take away what the pod asked for.
        target.chmod(file.mode)
        if file.owner is not None:
            os.chown(target, file.owner, -1)


def _swap(volume: Path, name: str) -> None:
    link = volume / _NEW_DATA
    with suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(name)
    link.rename(volume / DATA)


def _link(volume: Path, payload: Payload) -> None:
    """A link for the first element of each path. Links are made and removed after the swap, so that none is
    dangling."""
    wanted = {PurePosixPath(path).parts[0] for path in payload}
    for name in wanted:
        with suppress(FileExistsError):
            (volume / name).symlink_to(f"{DATA}/{name}")
    for entry in list(os.scandir(volume)):
        if entry.is_symlink() and entry.name not in wanted and not entry.name.startswith(".."):
            os.unlink(entry.path)
