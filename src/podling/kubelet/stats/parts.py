"""Numbers as the summary shows them; `stalled` is what the kernel's file of the resource's pressure says, if
there is one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.stats.disk import FileSystem, Used
from podling.kubelet.stats.rates import Rates
from podling.kubelet.stats.summary import (
    CPUStats,
    FsStats,
    InterfaceStats,
    IOStats,
    MemoryStats,
    NetworkStats,
    PSIData,
    PSIStats,
    SwapStats,
)
from podling.kubelet.stats.usage import Interface, Memory, pressure

DEFAULT_INTERFACE = "eth0"


def cpu_stats(
    nanoseconds: int | None, rates: Rates, key: str, at: float, time: str, stalled: str = ""
) -> CPUStats | None:
    if nanoseconds is None:
        return None
    return CPUStats(
        time=time,
        usage_core_nano_seconds=nanoseconds,
        usage_nano_cores=rates.rate(key, nanoseconds, at),
        psi=psi_stats(stalled),
    )


def memory_stats(used: Memory | None, time: str, stalled: str = "") -> MemoryStats | None:
    if used is None:
        return None
    return MemoryStats(
        time=time,
        available_bytes=None if used.limit is None else max(used.limit - used.working_set, 0),
        usage_bytes=used.usage,
        working_set_bytes=used.working_set,
        rss_bytes=used.rss,
        page_faults=used.page_faults,
        major_page_faults=used.major_page_faults,
        psi=psi_stats(stalled),
    )


def psi_stats(text: str) -> PSIStats | None:
    """None where the kernel does not count it."""
    found = pressure(text)
    return PSIStats(full=PSIData(*found.full), some=PSIData(*found.some)) if found else None


def io_stats(text: str, time: str) -> IOStats | None:
    psi = psi_stats(text)
    return IOStats(time=time, psi=psi) if psi else None


def swap_stats(used: Memory | None, time: str) -> SwapStats | None:
    if used is None or used.swap is None:
        return None
    return SwapStats(time=time, swap_usage_bytes=used.swap)


def network_stats(found: Sequence[Interface], time: str) -> NetworkStats | None:
    if not found:
        return None
    first = next((one for one in found if one.name == DEFAULT_INTERFACE), found[0])
    every = [InterfaceStats(*one) for one in found]
    return NetworkStats(*first, time=time, interfaces=every)


def fs_stats(system: FileSystem, used: Used | None, time: str) -> FsStats:
    """`used` is the part of the file system that is meant; without it, all of it."""
    taken = used or Used(system.capacity - system.available, system.inodes - system.inodes_free)
    return FsStats(
        time=time,
        available_bytes=system.available,
        capacity_bytes=system.capacity,
        used_bytes=taken.size,
        inodes_free=system.inodes_free,
        inodes=system.inodes,
        inodes_used=taken.inodes,
    )


def used_of(usage: pb.FilesystemUsage) -> Used:
    """As the runtime tells it."""
    return Used(usage.used_bytes.value, usage.inodes_used.value)
