"""emptyDir volumes: an empty place that lives as long as the pod, on disk or in memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from podling.kubelet.volumes.mounts import mount_tmpfs
from podling.kubelet.volumes.payload import VolumeError
from podling.model.volume import EmptyDirVolumeSource

PLUGIN = "empty-dir"
MODE = 0o777
MEMORY = "Memory"
HUGE_PAGES = "HugePages"


def set_up(source: EmptyDirVolumeSource, directory: Path, memory: int) -> None:
    """`memory`: the bytes of it that one in memory may have at most. Idempotent: what a pod wrote before the
    kubelet restarted stays."""
    if source.medium.startswith(HUGE_PAGES):
        raise VolumeError(f'storage medium "{source.medium}" is not supported by this kubelet')
    if source.medium not in ("", MEMORY):
        raise VolumeError(f'unknown storage medium "{source.medium}"')
    directory.mkdir(parents=True, exist_ok=True)
    if source.medium == MEMORY and not os.path.ismount(directory):
        mount_tmpfs(directory, size(source, memory))
    # Whatever user the container runs as may write; mkdir's own mode is cut by the umask.
    directory.chmod(MODE | (directory.stat().st_mode & stat.S_ISGID))


def size(source: EmptyDirVolumeSource, memory: int) -> int:
    asked = source.size_limit.value() if source.size_limit else 0
    return min(asked, memory) if asked > 0 else memory
