"""hostPath volumes: a path of the node, of the kind the pod expects."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from podling.kubelet.files.tree import make_directories
from podling.kubelet.volumes.payload import VolumeError
from podling.model.volume import HostPathVolumeSource

_KINDS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def set_up(source: HostPathVolumeSource) -> Path:
    """The path to mount. With no type nothing is checked; the runtime makes a missing directory."""
    path = Path(source.path)
    if source.type:
        _create(path, source.type)
        _check(path, source.type)
    return path


def _create(path: Path, kind: str) -> None:
    if path.exists():
        return
    if kind == "DirectoryOrCreate":
        make_directories(path)
    elif kind == "FileOrCreate":
        # The parent is not made: a file in a directory nobody made is more likely a typing error.
        try:
            path.touch(mode=0o644)
        except FileNotFoundError as error:
            raise VolumeError(f"open {path}: no such file or directory") from error


def _check(path: Path, kind: str) -> None:
    is_kind, name = _KINDS[kind]
    try:
        fits = is_kind(path.stat().st_mode)
    except OSError:
        fits = False
    if not fits:
        raise VolumeError(f"hostPath type check failed: {path} is not {name}")
