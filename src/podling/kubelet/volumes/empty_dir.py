"""emptyDir volumes: an empty place that lives as long as the pod, on disk or in memory.

A place has its group and mode before it has its name, so one that is there is ready, and a kubelet that comes
back leaves it as its containers have made it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from podling.kubelet.files.tree import make_directories
from podling.kubelet.volumes.mounts import mount_tmpfs
from podling.kubelet.volumes.payload import VolumeError
from podling.model.volume import EmptyDirVolumeSource

PLUGIN = "empty-dir"
MODE = 0o777
MEMORY = "Memory"
HUGE_PAGES = "HugePages"


def set_up(source: EmptyDirVolumeSource, directory: Path, memory: int, group: int | None) -> None:
    """`memory`: the bytes of it that one in memory may have at most; `group`: whose it is (`fsGroup`).
    Raises VolumeError and OSError."""
    if source.medium.startswith(HUGE_PAGES):
        raise VolumeError(f'storage medium "{source.medium}" is not supported by this kubelet')
    if source.medium not in ("", MEMORY):
        raise VolumeError(f'unknown storage medium "{source.medium}"')
    if source.medium == MEMORY:
        make_in_memory(directory, group, size(source, memory))
    else:
        make(directory, group)


def make(directory: Path, group: int | None) -> None:
    """On disk. Idempotent. Raises OSError."""
    if directory.exists():
        return
    # No volume has such a name, and one that a killed kubelet has left is made ready again.
    fresh = directory.with_name(f".{directory.name}")
    make_directories(fresh)
    if group is not None:
        os.chown(fresh, -1, group)
    # mkdir's own mode is cut by the umask.
    fresh.chmod(_mode(group))
    fresh.rename(directory)


def make_in_memory(directory: Path, group: int | None, size_bytes: int | None = None) -> None:
    """Idempotent. Raises OSError."""
    make_directories(directory)
    if not os.path.ismount(directory):
        mount_tmpfs(directory, size_bytes, mode=_mode(group), gid=group or 0)


def size(source: EmptyDirVolumeSource, memory: int) -> int:
    asked = source.size_limit.value() if source.size_limit else 0
    return min(asked, memory) if asked > 0 else memory


def _mode(group: int | None) -> int:
    """Whatever user the container runs as may write, and what is made in it belongs to the group, too."""
    return MODE if group is None else MODE | stat.S_ISGID
