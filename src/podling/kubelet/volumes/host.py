"""emptyDir volumes (on disk or in memory) and hostPath volumes.

A new directory gets its group and mode under a temporary name and is then renamed. So a directory that has
its final name is complete, and a kubelet that restarts leaves it as its containers have changed it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from podling.kubelet.files.tree import make_directories
from podling.kubelet.volumes.files import VolumeError
from podling.model.types.volume import EmptyDirVolumeSource, HostPathVolumeSource
from podling.process.mounts import mount_tmpfs

EMPTY_DIR_PLUGIN = "empty-dir"
EMPTY_DIR_MODE = 0o777
MEMORY = "Memory"
HUGE_PAGES = "HugePages"
_KINDS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def set_up_empty_dir(source: EmptyDirVolumeSource, directory: Path, memory: int, group: int | None) -> None:
    """`memory` limits the bytes of an emptyDir in memory; `group` is the fsGroup. Raises VolumeError and
    OSError."""
    if source.medium.startswith(HUGE_PAGES):
        raise VolumeError(f'storage medium "{source.medium}" is not supported by this kubelet')
    if source.medium not in ("", MEMORY):
        raise VolumeError(f'unknown storage medium "{source.medium}"')
    if source.medium == MEMORY:
        make_in_memory(directory, group, empty_dir_size(source, memory))
    else:
        make(directory, group)


def make(directory: Path, group: int | None) -> None:
    """Make a directory on disk. Idempotent. Raises OSError."""
    if directory.exists():
        return
    # No volume's name begins with a dot. What a killed kubelet left under this name is used again.
    fresh = directory.with_name(f".{directory.name}")
    make_directories(fresh)
    if group is not None:
        os.chown(fresh, -1, group)
    # mkdir's own mode is cut by the umask.
    fresh.chmod(_mode(group))
    fresh.rename(directory)


def make_in_memory(directory: Path, group: int | None, size_bytes: int | None = None) -> None:
    """Mount a tmpfs. Idempotent. Raises OSError."""
    make_directories(directory)
    if not os.path.ismount(directory):
        mount_tmpfs(directory, size_bytes, mode=_mode(group), gid=group or 0)


def empty_dir_size(source: EmptyDirVolumeSource, memory: int) -> int:
    asked = source.size_limit.value() if source.size_limit else 0
    return min(asked, memory) if asked > 0 else memory


def _mode(group: int | None) -> int:
    """Writable for every user the container may run as; with a group setgid, so that new files belong to
    it."""
    return EMPTY_DIR_MODE if group is None else EMPTY_DIR_MODE | stat.S_ISGID


def set_up_host_path(source: HostPathVolumeSource) -> Path:
    """The path to mount. Without a type nothing is checked, and the runtime makes a missing directory. Raises
    VolumeError and OSError."""
    path = Path(source.path)
    if not source.type:
        return path
    if source.type == "DirectoryOrCreate" and not path.exists():
        make_directories(path)
    elif source.type == "FileOrCreate" and not path.exists():
        # As in Kubernetes, the parent directory is not made.
        try:
            path.touch(mode=0o644)
        except FileNotFoundError as error:
            raise VolumeError(f"open {path}: no such file or directory") from error
    is_kind, name = _KINDS[source.type]
    try:
        fits = is_kind(path.stat().st_mode)
    except OSError:
        fits = False
    if not fits:
        raise VolumeError(f"hostPath type check failed: {path} is not {name}")
    return path
