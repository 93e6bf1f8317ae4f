"""How much the node has left, read from the kernel: a few files and two questions to file systems, some tens
of microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podling.kubelet.eviction.thresholds import (
    ALLOCATABLE_MEMORY,
    IMAGEFS,
    IMAGEFS_INODES,
    MEMORY,
    NODEFS,
    NODEFS_INODES,
    PIDS,
    Reading,
    Readings,
)
from podling.kubelet.stats import usage
from podling.kubelet.stats.disk import file_system
from podling.kubelet.stats.reading import PROC, CgroupReader, process_ids


class NodeReadings:
    """`images` is where the runtime keeps them, once that is known."""

    def __init__(self, root_dir: Path, pods_cgroup: str, reader: CgroupReader, proc: Path = PROC) -> None:
        self._root_dir = root_dir
        self._pods_cgroup = pods_cgroup
        self._reader = reader
        self._proc = proc
        self.images: Path | None = None

    @property
    def images_apart(self) -> bool:
        """Whether images have a file system of their own."""
        try:
            return self.images is not None and self.images.stat().st_dev != self._root_dir.stat().st_dev
        except OSError:
            return False

    def read(self) -> Readings:
        """What cannot be read is left out."""
        found = dict(self._memory())
        found.update(_disk(self._root_dir, NODEFS, NODEFS_INODES))
        if self.images is not None:
            found.update(_disk(self.images, IMAGEFS, IMAGEFS_INODES))
        with suppress(OSError):
            running, most = process_ids(self._proc)
            found[PIDS] = Reading(most - running, most)
        return found

    def _memory(self) -> Iterator[tuple[str, Reading]]:
        meminfo = (self._proc / "meminfo").read_text()
        yield MEMORY, _left(usage.node_memory(meminfo, ""))
        pods = usage.memory(self._reader.read(self._pods_cgroup))
        if pods is not None and pods.limit is not None:
            yield ALLOCATABLE_MEMORY, _left(pods)


def _left(memory: usage.Memory) -> Reading:
    capacity = memory.limit or 0
    return Reading(max(capacity - memory.working_set, 0), capacity)


def _disk(path: Path, size: str, inodes: str) -> Iterator[tuple[str, Reading]]:
    try:
        system = file_system(path)
    except OSError:
        return
    yield size, Reading(system.available, system.capacity)
    if system.inodes:
        # Some file systems do not count them.
        yield inodes, Reading(system.inodes_free, system.inodes)
