"""The answer of `/stats/summary`: stats/v1alpha1, of which only what is known is written."""

from __future__ import annotations

import msgspec

from podling.model.base import Part, always, null
from podling.model.fields import Time


class PSIData(Part):
    """`total` is microseconds, the others are per cent."""

    total: int = always(int)
    avg10: float = always(float)
    avg60: float = always(float)
    avg300: float = always(float)


class PSIStats(Part):
    full: PSIData = always(PSIData)
    some: PSIData = always(PSIData)


class IOStats(Part):
    time: Time
    psi: PSIStats | None = None


class CPUStats(Part):
    """`usage_core_nano_seconds` is spent since the beginning, `usage_nano_cores` the rate of late."""

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
    time: Time
    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class FsStats(Part):
    """What is free is of the whole file system, what is used of its part that is meant."""

    time: Time
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class VolumeStats(FsStats):
    name: str = ""


class InterfaceStats(Part):
    name: str = always(str)
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None


class NetworkStats(InterfaceStats):
    """Itself the default interface; `interfaces` are all of them, loopback apart."""

    time: Time | None = null()
    interfaces: list[InterfaceStats] = []


class ContainerStats(Part):
    name: str = always(str)
    start_time: Time | None = null()
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None


class PodReference(Part):
    name: str = always(str)
    namespace: str = always(str)
    uid: str = always(str)


class ProcessStats(Part):
    process_count: int | None = msgspec.field(default=None, name="process_count")


class PodStats(Part):
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
    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


class RlimitStats(Part):
    """Of process ids: how many there may be, and are."""

    time: Time
    maxpid: int | None = None
    curproc: int | None = None


class NodeStats(Part):
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
    node: NodeStats
    pods: list[PodStats] = always(list)
