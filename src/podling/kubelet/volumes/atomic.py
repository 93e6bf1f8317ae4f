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
    try:
        current = volume / os.readlink(volume / DATA)
    except FileNotFoundError:
        current = None
    wanted = {str(PurePosixPath(path)): file.data for path, file in payload.items()}
    if current is not None and _read(current) == wanted:
        return False
    fresh = Path(tempfile.mkdtemp(prefix=f"..{now:%Y_%m_%d_%H_%M_%S}.", dir=volume))
    fresh.chmod(0o755)
    for path, file in payload.items():
        target = fresh / path
        make_directories(target.parent)
        target.write_bytes(file.data)
        # The umask must not take away what the pod asked for.
        target.chmod(file.mode)
        if file.owner is not None:
            os.chown(target, file.owner, -1)
    if own is not None:
        own(fresh)
    new_data = volume / _NEW_DATA
    new_data.unlink(missing_ok=True)
    new_data.symlink_to(fresh.name)
    new_data.rename(volume / DATA)
    # Links to the files are made and removed after the swap, so that none is dangling.
    linked = {PurePosixPath(path).parts[0] for path in payload}
    for name in linked:
        with suppress(FileExistsError):
            (volume / name).symlink_to(f"{DATA}/{name}")
    for entry in list(os.scandir(volume)):
        if entry.is_symlink() and entry.name not in linked and not entry.name.startswith(".."):
            os.unlink(entry.path)
    if current is not None:
        remove(current)
    return True


def _read(directory: Path) -> dict[str, bytes]:
    """The regular files of a tree, by relative path."""
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
