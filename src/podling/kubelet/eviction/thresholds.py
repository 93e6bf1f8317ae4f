"""Eviction thresholds, and the readings they are compared with.

A threshold is crossed when less is available than it says. A soft one counts after its grace period. A
crossed one ends when its minimum reclaim is available in addition. `NodeReadings` reads a few files and asks
two file systems, which takes some tens of microseconds; the rest is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from podling.kubelet.config import KubeletConfig
from podling.kubelet.host import usage
from podling.kubelet.host.disk import file_system
from podling.kubelet.host.usage import PROC, CgroupReader, process_ids
from podling.kubelet.node.shared import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE
from podling.kubelet.options.signals import (
    ALLOCATABLE_MEMORY,
    IMAGEFS,
    IMAGEFS_INODES,
    MEMORY,
    NODEFS,
    NODEFS_INODES,
    PIDS,
    Amount,
    ThresholdError,
    known_signal,
    parse_amount,
)

STORAGE, INODES = "ephemeral-storage", "inodes"

CONDITIONS = {
    MEMORY: MEMORY_PRESSURE,
    ALLOCATABLE_MEMORY: MEMORY_PRESSURE,
    NODEFS: DISK_PRESSURE,
    NODEFS_INODES: DISK_PRESSURE,
    IMAGEFS: DISK_PRESSURE,
    IMAGEFS_INODES: DISK_PRESSURE,
    PIDS: PID_PRESSURE,
}
"""The node's condition while a signal's threshold is crossed."""
RESOURCES = {
    MEMORY: "memory",
    ALLOCATABLE_MEMORY: "memory",
    NODEFS: STORAGE,
    NODEFS_INODES: INODES,
    IMAGEFS: STORAGE,
    IMAGEFS_INODES: INODES,
    PIDS: "pids",
}
"""What pods are evicted for using."""
AT_ONCE = timedelta()
NOTHING = Amount()


class Threshold(msgspec.Struct, frozen=True):
    """Crossed when less than `amount` is available; evicts after `grace`, and ends when `reclaim` is
    available in addition."""

    signal: str
    amount: Amount
    grace: timedelta = AT_ONCE
    reclaim: Amount = NOTHING

    @property
    def is_hard(self) -> bool:
        return self.grace == AT_ONCE


class Reading(msgspec.Struct, frozen=True):
    """The state of one signal, in bytes, inodes or process ids."""

    available: int
    capacity: int


Readings = Mapping[str, Reading]
"""By signal; one that cannot be read is absent, and none of its thresholds is crossed."""


def thresholds(config: KubeletConfig) -> tuple[Threshold, ...]:
    """Those of the configuration; of hard ones `0` and `0%` are none. Memory counts against what all pods
    may have, too. Raises ThresholdError."""
    reclaim = {signal: parse_amount(text) for signal, text in config.eviction_minimum_reclaim.items()}
    found = []
    for signal, text in config.eviction_hard.items():
        amount = parse_amount(text)
        if amount != NOTHING:
            found.append(Threshold(known_signal(signal), amount, reclaim=reclaim.get(signal, NOTHING)))
            if signal == MEMORY:
                found.append(Threshold(ALLOCATABLE_MEMORY, amount, reclaim=reclaim.get(signal, NOTHING)))
    for signal, text in config.eviction_soft.items():
        if signal not in config.eviction_soft_grace:
            raise ThresholdError(f"grace period must be specified for the soft eviction threshold {signal}")
        grace = config.eviction_soft_grace[signal]
        found.append(Threshold(known_signal(signal), parse_amount(text), grace, reclaim.get(signal, NOTHING)))
    return tuple(found)


class Pressure(msgspec.Struct, frozen=True):
    """The crossed thresholds and the node conditions after a reading."""

    crossed: Mapping[Threshold, datetime] = msgspec.field(default_factory=dict)
    """Threshold → when it was first seen crossed."""
    seen: Mapping[str, datetime] = msgspec.field(default_factory=dict)
    """Condition → when it was last seen."""

    def next(
        self, all_: Iterable[Threshold], readings: Readings, now: datetime, stays: timedelta
    ) -> Pressure:
        """The state after these readings. A condition `stays` (evictionPressureTransitionPeriod) after it was
        last seen."""
        crossed = {
            threshold: self.crossed.get(threshold, now)
            for threshold in all_
            if is_crossed(threshold, readings, again=threshold in self.crossed)
        }
        current = {CONDITIONS[threshold.signal]: now for threshold in crossed}
        lately = {condition: at for condition, at in self.seen.items() if now - at < stays}
        return Pressure(crossed, lately | current)

    @property
    def conditions(self) -> frozenset[str]:
        return frozenset(self.seen)

    def due(self, now: datetime) -> list[Threshold]:
        """Thresholds crossed for their grace period. Memory comes first, as it runs out fastest."""
        lasting = [threshold for threshold, since in self.crossed.items() if now - since >= threshold.grace]
        return sorted(lasting, key=lambda threshold: RESOURCES[threshold.signal] != "memory")


def is_crossed(threshold: Threshold, readings: Readings, *, again: bool = False) -> bool:
    """`again`: it was crossed before, and ends only with the minimum reclaim available in addition."""
    reading = readings.get(threshold.signal)
    if reading is None:
        return False
    least = threshold.amount.of(reading.capacity)
    if again:
        least += threshold.reclaim.of(reading.capacity)
    return reading.available < least


class NodeReadings:
    """Reads all signals. `images` is the mount point of the runtime's images, None until it is known."""

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
        """All signals that can be read."""
        meminfo = (self._proc / "meminfo").read_text()
        found = {MEMORY: _left(usage.node_memory(meminfo, ""))}
        pods = usage.memory(self._reader.read(self._pods_cgroup))
        if pods is not None and pods.limit is not None:
            found[ALLOCATABLE_MEMORY] = _left(pods)
        found.update(_disk(self._root_dir, NODEFS, NODEFS_INODES))
        if self.images is not None:
            found.update(_disk(self.images, IMAGEFS, IMAGEFS_INODES))
        with suppress(OSError):
            running, most = process_ids(self._proc)
            found[PIDS] = Reading(most - running, most)
        return found


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
