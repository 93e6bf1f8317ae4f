"""The types of `/stats/summary` (stats/v1alpha1), and functions that fill them from readings. Pure.

A field whose value is unknown is left out. `stalled`, where a function takes it, is the text of the kernel's
pressure file of that resource, or "".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.host.disk import FileSystem, Used
from podling.kubelet.host.usage import Interface, Memory, pressure
from podling.kubelet.pod.host import ClaimedUse
from podling.model.codec.fields import Part, Time, always, null

SHORTEST = 1.0
"""Seconds between two readings below which no new rate is computed."""
DEFAULT_INTERFACE = "eth0"


class _Look(NamedTuple):
    at: float
    value: int
    rate: int | None


class Rates:
    """Rates of counters, from one reading of each to the next."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}

    def rate(self, key: str, value: int, at: float) -> int | None:
        """The increase of `key` per second since its reading before; None at the first one. `at` is in
        seconds."""
        before = self._looks.get(key)
        if before is None or value < before.value:
            self._looks[key] = _Look(at, value, None)
            return None
        if at - before.at < SHORTEST:
            return before.rate
        rate = int((value - before.value) / (at - before.at))
        self._looks[key] = _Look(at, value, rate)
        return rate

    def keep(self, keys: set[str]) -> None:
        """Forget all others."""
        self._looks = {key: look for key, look in self._looks.items() if key in keys}


class PSIData(Part):
    """`total` is microseconds, the others are per cent."""

    total: int = always(int)
    avg10: float = always(float)
    avg60: float = always(float)
    avg300: float = always(float)


class PSIStats(Part):
    """Pressure stall information: of `some` tasks or, at once, of all (`full`)."""

    full: PSIData = always(PSIData)
    some: PSIData = always(PSIData)


class IOStats(Part):
    """Pressure of input and output."""

    time: Time
    psi: PSIStats | None = None


class CPUStats(Part):
    """`usage_core_nano_seconds` is the total, `usage_nano_cores` the rate since the reading before."""

    time: Time
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None
    psi: PSIStats | None = None


class MemoryStats(Part):
    """`available_bytes` only where there is a limit."""

    time: Time
    available_bytes: int | None = None
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    psi: PSIStats | None = None


class SwapStats(Part):
    """`swap_usage_bytes` is what is swapped out; what is left is not known."""

    time: Time
    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class FsStats(Part):
    """Capacity and available are those of the whole file system, used those of the part that is described."""

    time: Time
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class PVCReference(Part):
    """The claim of a volume."""

    name: str = always(str)
    namespace: str = always(str)


class VolumeHealthStats(Part):
    """What a driver says of its volume."""

    abnormal: bool = always(bool)


class VolumeStats(FsStats):
    """What a volume uses of its file system."""

    name: str = ""
    pvc_ref: PVCReference | None = msgspec.field(default=None, name="pvcRef")
    volume_health_stats: VolumeHealthStats | None = None


class InterfaceStats(Part):
    """Bytes and errors since the interface was made."""

    name: str = always(str)
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None


class NetworkStats(InterfaceStats):
    """Its own fields are the default interface's; `interfaces` has all except loopback."""

    time: Time | None = null()
    interfaces: list[InterfaceStats] = []


class ContainerStats(Part):
    """A container; `rootfs` is its writable layer."""

    name: str = always(str)
    start_time: Time | None = null()
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None


class PodReference(Part):
    """The pod that the numbers are about."""

    name: str = always(str)
    namespace: str = always(str)
    uid: str = always(str)


class ProcessStats(Part):
    """The processes and threads of a pod."""

    process_count: int | None = msgspec.field(default=None, name="process_count")


class PodStats(Part):
    """A pod; CPU and memory are those of its cgroup."""

    pod_ref: PodReference
    start_time: Time | None = null()
    containers: list[ContainerStats] = always(list)
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    network: NetworkStats | None = None
    volume: list[VolumeStats] = []
    ephemeral_storage: FsStats | None = msgspec.field(default=None, name="ephemeral-storage")
    process_stats: ProcessStats | None = msgspec.field(default=None, name="process_stats")
    swap: SwapStats | None = None


class RuntimeStats(Part):
    """The file systems of images and of containers' writable layers."""

    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


class RlimitStats(Part):
    """Process ids: the maximum and the current number."""

    time: Time
    maxpid: int | None = None
    curproc: int | None = None


class NodeStats(Part):
    """The node; `system_containers` are the kubelet and all pods together."""

    node_name: str = always(str)
    system_containers: list[ContainerStats] = []
    start_time: Time | None = null()
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    network: NetworkStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None
    swap: SwapStats | None = None


class Summary(Part):
    """The answer of /stats/summary (stats/v1alpha1)."""

    node: NodeStats
    pods: list[PodStats] = always(list)


def cpu_stats(
    nanoseconds: int | None, rates: Rates, key: str, at: float, time: str, stalled: str = ""
) -> CPUStats | None:
    """`nanoseconds` of CPU time used so far; `key` names whose, for the rate since the look before. None if
    it is not known."""
    if nanoseconds is None:
        return None
    return CPUStats(
        time=time,
        usage_core_nano_seconds=nanoseconds,
        usage_nano_cores=rates.rate(key, nanoseconds, at),
        psi=psi_stats(stalled),
    )


def memory_stats(used: Memory | None, time: str, stalled: str = "") -> MemoryStats | None:
    """None if nothing is known."""
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
    """`used` is the usage of a part of the file system; None for all of it."""
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


def claimed_stats(one: ClaimedUse, namespace: str, time: str) -> VolumeStats:
    use = one.use
    return VolumeStats(
        time=time,
        available_bytes=use.available,
        capacity_bytes=use.capacity,
        used_bytes=use.used,
        inodes_free=use.inodes_free,
        inodes=use.inodes,
        inodes_used=use.inodes_used,
        name=one.volume,
        pvc_ref=PVCReference(name=one.claim, namespace=namespace) if one.claim else None,
        volume_health_stats=None if use.abnormal is None else VolumeHealthStats(abnormal=use.abnormal),
    )


def used_of(usage: pb.FilesystemUsage) -> Used:
    """The usage that the runtime reports."""
    return Used(usage.used_bytes.value, usage.inodes_used.value)
