"""Collects what `/stats/summary` shows. The runtime reports the disk usage of containers and images; all
other numbers come from the kernel's files. Nothing is measured unless a client asks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host import usage
from podling.kubelet.host.cgroups import Cgroups, keyed
from podling.kubelet.host.disk import NOTHING, FileSystem, Measured, Used, file_system
from podling.kubelet.host.usage import PROC, CgroupReader, process_ids
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.host import ClaimedUse, MeasuredHost
from podling.kubelet.stats.summary import (
    ContainerStats,
    CPUStats,
    FsStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    Rates,
    RlimitStats,
    RuntimeStats,
    Summary,
    VolumeStats,
    claimed_stats,
    cpu_stats,
    fs_stats,
    io_stats,
    memory_stats,
    network_stats,
    swap_stats,
    used_of,
)
from podling.model.time import Clock, rfc3339
from podling.model.types.pod import Pod

log = logging.getLogger(__name__)
OF_DRIVERS = "kubernetes.io~csi"
"""The directory of a pod's volumes that CSI drivers mount."""
_NO_FILES: usage.Files = {}


class RuntimeDisk(msgspec.Struct, frozen=True):
    """Disk usage as the runtime reports it."""

    written: Mapping[str, Used] = msgspec.field(default_factory=dict)
    """By container id: its writable layer."""
    images: Path | None = None
    """The mount point of the images' file system; None if the runtime does not say."""
    images_used: Used = NOTHING


class _Subject(msgspec.Struct, frozen=True):
    """A pod to measure, read on the event loop. `containers` has the ids of running containers by name."""

    pod: Pod
    containers: Mapping[str, str]
    sandbox: str | None
    uses: Sequence[ClaimedUse] = ()


class StatsCollector:
    """Makes a Summary for whoever asks."""

    def __init__(self, host: MeasuredHost, config: KubeletConfig, cgroups: Cgroups, clock: Clock) -> None:
        self._host = host
        self._config = config
        self._cgroups = cgroups
        self._clock = clock
        self._reader = CgroupReader(cgroups.hierarchies)
        self._rates = Rates()
        self._measured = Measured()

    async def summary(self, *, disk: bool = True, claims: bool = False) -> Summary:
        """The summary of the node and of all pods with a running container; without `disk` only CPU, memory,
        swap and pressure. With `claims` also volumes that drivers and claims have made."""
        host = self._host
        known = await self.runtime_disk() if disk else None
        now = self._clock.now()
        subjects = []
        for pod in host.pods():
            found = {c.name: host.running_container(pod, c.name) for _, c in all_containers(pod)}
            if running := {name: id_ for name, id_ in found.items() if id_}:
                uses = await host.volume_uses(pod) if claims else ()
                subjects.append(_Subject(pod, running, host.ready_sandbox(pod), uses))

        def look() -> Summary:
            look = _Look(now, self._config, self._cgroups, self._reader, self._rates, self._measured, known)
            summary = Summary(node=look.node(), pods=[look.pod(subject) for subject in subjects])
            self._rates.keep(look.keys)
            return summary

        return await asyncio.to_thread(look)

    async def runtime_disk(self) -> RuntimeDisk:
        """Empty if the runtime does not answer, which is logged."""
        try:
            listed, told = await asyncio.gather(
                self._host.runtime.list_container_stats(), self._host.runtime.image_fs_info()
            )
        except RuntimeFault as fault:
            log.warning("the runtime does not say what disk it uses: %s", fault)
            return RuntimeDisk()
        written = {stats.attributes.id: used_of(stats.writable_layer) for stats in listed}
        if not told.image_filesystems:
            return RuntimeDisk(written)
        images: pb.FilesystemUsage = told.image_filesystems[0]
        return RuntimeDisk(written, Path(images.fs_id.mountpoint), used_of(images))


class _Look:
    """Measures everything once, for one summary. Blocking: run it off the event loop."""

    def __init__(
        self,
        now: datetime,
        config: KubeletConfig,
        cgroups: Cgroups,
        reader: CgroupReader,
        rates: Rates,
        measured: Measured,
        disk: RuntimeDisk | None,
    ) -> None:
        self.keys: set[str] = set()
        self._at, self._time = now.timestamp(), rfc3339(now)
        self._config = config
        self._cgroups = cgroups
        self._reader = reader
        self._rates = rates
        self._measured = measured
        self._disk = disk
        self._node_fs = _system(config.root_dir)
        self._image_fs = _system(disk.images) if disk and disk.images else None

    def node(self) -> NodeStats:
        used = usage.node_memory((PROC / "meminfo").read_text(), (PROC / "vmstat").read_text())
        stat, stalled = (PROC / "stat").read_text(), self._reader.node_pressure()
        # The kubelet is this process.
        resident = int((PROC / "self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        kubelet = ContainerStats(
            name="kubelet",
            cpu=self._cpu("kubelet", time.process_time_ns()),
            memory=memory_stats(usage.Memory(resident, resident, resident, 0, 0), self._time),
        )
        root = self._cgroups.root
        files = self._reader.read(root)
        pods = ContainerStats(
            name="pods",
            cpu=self._cpu(root, usage.cpu_nanoseconds(files), files),
            memory=memory_stats(usage.memory(files), self._time, files.get("memory.pressure", "")),
            io=io_stats(files.get("io.pressure", ""), self._time),
        )
        node = NodeStats(
            node_name=self._config.node_name,
            system_containers=[kubelet, pods],
            start_time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(keyed(stat).get("btime", 0))),
            cpu=self._cpu("node", usage.node_cpu_nanoseconds(stat), stalled),
            memory=memory_stats(used, self._time, stalled.get("memory.pressure", "")),
            io=io_stats(stalled.get("io.pressure", ""), self._time),
            swap=swap_stats(used, self._time),
        )
        if self._disk is not None:
            node.network = network_stats(usage.interfaces((PROC / "net/dev").read_text()), self._time)
            node.fs = self._fs(self._node_fs, None)
            images = self._fs(self._image_fs, self._disk.images_used)
            node.runtime = RuntimeStats(image_fs=images, container_fs=images)
            running, most = process_ids()
            node.rlimit = RlimitStats(time=self._time, maxpid=most, curproc=running)
        return node

    def pod(self, subject: _Subject) -> PodStats:
        pod, cgroup = subject.pod, self._cgroups.path(subject.pod)
        files = self._reader.read(cgroup)
        used = usage.memory(files)
        meta = pod.metadata
        stats = PodStats(
            PodReference(name=meta.name, namespace=meta.namespace, uid=meta.uid),
            start_time=pod.status.start_time,
            containers=[self._container(subject, name, cgroup) for name in subject.containers],
            cpu=self._cpu(cgroup, usage.cpu_nanoseconds(files), files),
            memory=memory_stats(used, self._time, files.get("memory.pressure", "")),
            io=io_stats(files.get("io.pressure", ""), self._time),
            swap=swap_stats(used, self._time),
        )
        if self._disk is not None:
            if subject.sandbox and not pod.spec.host_network:
                found = self._reader.network(f"{cgroup}/{subject.sandbox}")
                stats.network = network_stats(found, self._time)
            stats.process_stats = ProcessStats(process_count=usage.processes(files))
            volumes = PodDirectory.of(pod, self._config).volumes
            for path in sorted(volumes.glob("*/[!.]*")):
                # What drivers mount there, they are asked about.
                if path.parent.name != OF_DRIVERS and (system := _system(path)):
                    on_it = fs_stats(system, self._measured.used(path), self._time)
                    stats.volume.append(VolumeStats(name=path.name, **asdict(on_it)))
            stats.volume += [claimed_stats(one, meta.namespace, self._time) for one in subject.uses]
            # Ephemeral storage is writable layers, logs, and emptyDir volumes on disk.
            on_disk = {v.name for v in pod.spec.volumes if v.empty_dir is not None and not v.empty_dir.medium}
            parts: list[FsStats | None] = [volume for volume in stats.volume if volume.name in on_disk]
            parts += [part for container in stats.containers for part in (container.rootfs, container.logs)]
            known = [part for part in parts if part is not None]
            size, inodes = sum(p.used_bytes or 0 for p in known), sum(p.inodes_used or 0 for p in known)
            stats.ephemeral_storage = self._fs(self._node_fs, Used(size, inodes))
        return stats

    def _container(self, subject: _Subject, name: str, pod_cgroup: str) -> ContainerStats:
        id_ = subject.containers[name]
        cgroup = f"{pod_cgroup}/{id_}"
        files = self._reader.read(cgroup)
        used = usage.memory(files)
        known = subject.pod.status
        lists = (known.init_container_statuses, known.container_statuses, known.ephemeral_container_statuses)
        states = (status.state for statuses in lists for status in statuses if status.name == name)
        running = next((state.running for state in states), None)
        stats = ContainerStats(
            name=name,
            start_time=running.started_at if running else None,
            cpu=self._cpu(cgroup, usage.cpu_nanoseconds(files), files),
            memory=memory_stats(used, self._time, files.get("memory.pressure", "")),
            io=io_stats(files.get("io.pressure", ""), self._time),
            swap=swap_stats(used, self._time),
        )
        if self._disk is not None:
            stats.rootfs = self._fs(self._image_fs, self._disk.written.get(id_, NOTHING))
            logs = PodDirectory.of(subject.pod, self._config).container_logs(name)
            stats.logs = self._fs(self._node_fs, self._measured.used(logs))
        return stats

    def _cpu(self, key: str, nanoseconds: int | None, files: usage.Files = _NO_FILES) -> CPUStats | None:
        self.keys.add(key)
        stalled = files.get("cpu.pressure", "")
        return cpu_stats(nanoseconds, self._rates, key, self._at, self._time, stalled)

    def _fs(self, system: FileSystem | None, used: Used | None) -> FsStats | None:
        return fs_stats(system, used, self._time) if system else None


def _system(path: Path) -> FileSystem | None:
    try:
        return file_system(path)
    except OSError:
        return None
