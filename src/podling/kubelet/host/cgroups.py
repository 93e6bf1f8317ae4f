"""The cgroups of pods, on cgroup v1, hybrid and v2: what limits each, where it is, and how it is made and
removed.

A pod's cgroup has the pod's effective resources (R-INIT-9). Everything in the pod runs below it, ephemeral
containers included, so no container can take more than the pod asked for (R-EPH-12). The limits are pure;
`Cgroups` writes them.

The layout is that of Kubernetes' cgroupfs driver: a pod's cgroup is `<root>/pod<uid>` when its QoS class is
Guaranteed, else `<root>/burstable/pod<uid>` or `<root>/besteffort/pod<uid>`. Before it creates a pod's
sandbox, the kubelet makes the pod's cgroup in each hierarchy that limits something. The runtime makes the
containers' cgroups below it. After the pod the kubelet removes all of them.

v1      a hierarchy for each controller   cpu.shares, memory.limit_in_bytes ...
v2      one hierarchy                     cpu.weight, memory.max ...
hybrid  both; each controller is in one of them, and its files are those of that hierarchy's version
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podling.model.quantity import Quantity
from podling.model.rules.resources import (
    BEST_EFFORT,
    BURSTABLE,
    GUARANTEED,
    pod_limits,
    pod_requests,
    qos_class,
)
from podling.model.types.pod import Pod
from podling.process.mounts import MOUNTINFO, read_mounts

log = logging.getLogger(__name__)

CPU_PERIOD = 100_000
"""Microseconds."""
MINIMUM_QUOTA = 1_000
MINIMUM_SHARES = 2
MAXIMUM_SHARES = 262_144
HUGE_PAGES = "hugepages-"
LIMITED_BY = frozenset({"cpu", "memory", "pids", "hugetlb"})
COUNTED_BY = frozenset({"cpuacct"})
"""In v1 the controller that counts CPU time is not the one that limits it."""
_CLASS_PART = {"Guaranteed": "", "Burstable": "/burstable", "BestEffort": "/besteffort"}
_CGROUP2_CONTROLLERS, _CGROUP2_ENABLED = "cgroup.controllers", "cgroup.subtree_control"
_ZERO = Quantity("0")
V1_UNLIMITED, V2_UNLIMITED = "-1", "max"
UNLIMITED = (V1_UNLIMITED, V2_UNLIMITED, f"{V2_UNLIMITED} {CPU_PERIOD}")
_PAGE_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


class CgroupLimits(msgspec.Struct, frozen=True):
    """The limits of one cgroup; None is no limit."""

    cpu_shares: int = MINIMUM_SHARES
    cpu_quota: int | None = None
    """Microseconds in each CPU_PERIOD."""
    memory: int | None = None
    """Bytes."""
    pids: int | None = None
    """A number of tasks."""
    huge_pages: Mapping[int, int] = msgspec.field(default_factory=dict)
    """Page size → bytes in pages of this size; a size that is absent is not limited."""


def limits_of_pod(pod: Pod) -> CgroupLimits:
    """As Kubernetes' ResourceConfigForPod."""
    quality = qos_class(pod)
    requests, limits = pod_requests(pod), pod_limits(pod)
    memory, cpu = _bound(pod, quality, "memory"), _bound(pod, quality, "cpu")
    return CgroupLimits(
        cpu_shares=cpu_shares(requests.get("cpu", _ZERO).milli_value()),
        cpu_quota=cpu_quota(limits["cpu"].milli_value()) if cpu else None,
        memory=limits["memory"].value() if memory else None,
        huge_pages=huge_pages(requests),
    )


def on_node(limits: CgroupLimits, pids: int | None, page_sizes: Iterable[int]) -> CgroupLimits:
    """A pod's limits with those of the node: podPidsLimit, and 0 for the node's huge page sizes that the pod
    does not request."""
    return replace(limits, pids=pids, huge_pages=dict.fromkeys(page_sizes, 0) | dict(limits.huge_pages))


def limits_of_node(capacity: Mapping[str, Quantity], reserved: Mapping[str, Quantity]) -> CgroupLimits:
    """Of all pods together: capacity less the reserved resources. The eviction thresholds are not subtracted,
    else the OOM killer would come before the kubelet can evict."""
    left = {name: amount - reserved.get(name, _ZERO) for name, amount in capacity.items()}
    return CgroupLimits(
        cpu_shares=cpu_shares(left["cpu"].milli_value()),
        memory=max(left["memory"].value(), 0),
        huge_pages=huge_pages(left),
    )


def limits_of_classes(burstable_milli: int) -> dict[str, CgroupLimits]:
    """By QoS class, for the two that have a cgroup of their own. Burstable has the shares of all its pods'
    requests, BestEffort the minimum."""
    return {BURSTABLE: CgroupLimits(cpu_shares(burstable_milli)), BEST_EFFORT: CgroupLimits()}


def cpu_shares(milli: int) -> int:
    """v1's shares for a request in milli-CPUs, as Kubernetes' MilliCPUToShares."""
    return min(max(milli * 1024 // 1000, MINIMUM_SHARES), MAXIMUM_SHARES)


def cpu_quota(milli: int) -> int:
    """Microseconds in each CPU_PERIOD for a limit in milli-CPUs; 0 means no limit."""
    return max(milli * CPU_PERIOD // 1000, MINIMUM_QUOTA) if milli else 0


def huge_pages(amounts: Mapping[str, Quantity]) -> dict[int, int]:
    """Page size → bytes, from resources named `hugepages-<size>`."""
    return {
        Quantity(name.removeprefix(HUGE_PAGES)).value(): amount.value()
        for name, amount in amounts.items()
        if name.startswith(HUGE_PAGES)
    }


def _bound(pod: Pod, quality: str, resource: str) -> bool:
    """Whether the pod's cgroup gets a limit. Without a limit of the pod's own, it gets none if any container
    has none."""
    if quality != BURSTABLE:
        return quality == GUARANTEED
    if pod.spec.resources is not None and pod.spec.resources.limits.get(resource):
        return True
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return all(container.resources.limits.get(resource) for container in containers)


class Hierarchy(msgspec.Struct, frozen=True):
    """A mounted cgroup hierarchy."""

    path: Path
    """The mount point."""
    version: int
    """1 or 2."""
    controllers: frozenset[str]
    """Those of LIMITED_BY and COUNTED_BY that it has."""


class Cgroups:
    """The cgroups of a kubelet's pods, below `root` in every hierarchy mounted at or below `mount`. Methods
    that make or write a cgroup raise OSError."""

    def __init__(self, mount: Path, root: str, table: Path = MOUNTINFO) -> None:
        self.root = root
        self.hierarchies = hierarchies(mount, table)
        self._burstable: dict[str, int] = {}

    def set_up(self, limits: CgroupLimits) -> None:
        """Make the cgroup of all pods, with these limits, and those of the QoS classes."""
        self._write(self.root, limits)
        self._write_classes()

    def write(self, pod: Pod, limits: CgroupLimits) -> None:
        """Make the pod's cgroup where it is missing, and set its limits."""
        self._write(self.path(pod), limits)

    def path(self, pod: Pod) -> str:
        return pod_cgroup(self.root, qos_class(pod), pod.metadata.uid)

    def weigh(self, pod: Pod) -> None:
        """Count the pod's CPU request in the shares of its QoS class: Burstable has the sum of its pods."""
        if qos_class(pod) == BURSTABLE:
            self._weigh(pod.metadata.uid, pod_requests(pod).get("cpu", _ZERO).milli_value())

    def memory_usage(self, pod: Pod, container_id: str = "") -> int:
        """Bytes used by the pod, or by one of its containers; 0 if there is no such cgroup."""
        memory = self._memory_hierarchy()
        if memory is None:
            return 0
        name = "memory.usage_in_bytes" if memory.version == 1 else "memory.current"
        try:
            return int((_below(memory, self.path(pod)) / container_id / name).read_text())
        except FileNotFoundError:
            return 0

    def oom_kills(self, pod: Pod, container_id: str) -> int | None:
        """How many processes of the container the OOM killer has killed; None if the cgroup is gone."""
        memory = self._memory_hierarchy()
        if memory is None:
            return None
        name = "memory.oom_control" if memory.version == 1 else "memory.events"
        try:
            text = (_below(memory, self.path(pod)) / container_id / name).read_text()
        except OSError:
            return None
        return keyed(text).get("oom_kill")

    @property
    def limits_swap(self) -> bool:
        """Whether v1 counts swap together with memory."""
        memory = self._memory_hierarchy()
        if memory is None or memory.version == 2:
            return False
        return (_below(memory, self.root) / "memory.memsw.limit_in_bytes").exists()

    def container_settings(self, *, one_by_one: bool) -> dict[str, str]:
        """Files of every container's cgroup v2, with their content: no swap, and memory.oom.group, so that
        the OOM killer ends a whole container, unless `one_by_one` (singleProcessOOMKill)."""
        memory = self._memory_hierarchy()
        if memory is None or memory.version == 1:
            return {}
        settings = {} if one_by_one else {"memory.oom.group": "1"}
        if (_below(memory, self.root) / "memory.swap.max").exists():
            settings["memory.swap.max"] = "0"
        return settings

    def pods(self) -> set[str]:
        """The uids of the pods that have a cgroup in any hierarchy."""
        found: set[str] = set()
        for hierarchy in self.hierarchies:
            for part in _CLASS_PART.values():
                with (
                    suppress(FileNotFoundError),
                    os.scandir(_below(hierarchy, f"{self.root}{part}")) as entries,
                ):
                    names = [entry.name for entry in entries if entry.is_dir()]
                    found.update(name.removeprefix("pod") for name in names if name.startswith("pod"))
        return found

    def remove(self, uid: str) -> bool:
        """Remove the pod's cgroups in all hierarchies; False if one is busy, so that it must be tried
        again."""
        done = True
        for hierarchy in self.hierarchies:
            for part in _CLASS_PART.values():
                done &= remove_tree(_below(hierarchy, f"{self.root}{part}/pod{uid}"))
        try:
            self._weigh(uid, 0)
        except OSError as error:
            log.warning("the weight of pod %s is not taken back: %s", uid, error)
        return done

    def remove_root(self) -> bool:
        """Remove the cgroup of all pods, when the kubelet stops for good; False if something is left."""
        removed = [remove_tree(_below(hierarchy, self.root)) for hierarchy in self.hierarchies]
        return all(removed)

    def _memory_hierarchy(self) -> Hierarchy | None:
        return next((h for h in self.hierarchies if "memory" in h.controllers), None)

    def _weigh(self, uid: str, milli: int) -> None:
        if self._burstable.get(uid, 0) == milli:
            return
        if milli:
            self._burstable[uid] = milli
        else:
            del self._burstable[uid]
        self._write_classes()

    def _write_classes(self) -> None:
        for quality, limits in limits_of_classes(sum(self._burstable.values())).items():
            self._write(f"{self.root}{_CLASS_PART[quality]}", limits)

    def _write(self, path: str, limits: CgroupLimits) -> None:
        for hierarchy in self.hierarchies:
            writes = files(hierarchy, limits)
            # A hierarchy mounted read-only (in a container) is limited by whoever made it.
            if not writes or not os.access(hierarchy.path, os.W_OK):
                continue
            directory = _below(hierarchy, path)
            if hierarchy.version == 2:
                # A cgroup has the controllers that all of its ancestors pass on.
                for ancestor in reversed([p for p in directory.parents if p.is_relative_to(hierarchy.path)]):
                    ancestor.mkdir(exist_ok=True)
                    enabled = set((ancestor / _CGROUP2_ENABLED).read_text().split())
                    if missing := sorted(hierarchy.controllers - enabled):
                        _set(ancestor / _CGROUP2_ENABLED, " ".join(f"+{name}" for name in missing))
            directory.mkdir(parents=True, exist_ok=True)
            for name, value in writes.items():
                _set(directory / name, value)


def files(hierarchy: Hierarchy, limits: CgroupLimits) -> dict[str, str]:
    """File → content, in the order to write them, for the controllers of this hierarchy."""
    pids, quota = str(limits.pids or V2_UNLIMITED), limits.cpu_quota
    writes: list[tuple[str, str, object]]
    if hierarchy.version == 1:
        writes = [
            ("cpu", "cpu.shares", limits.cpu_shares),
            ("cpu", "cpu.cfs_period_us", CPU_PERIOD),
            ("cpu", "cpu.cfs_quota_us", quota or V1_UNLIMITED),
            ("memory", "memory.limit_in_bytes", limits.memory or V1_UNLIMITED),
            ("pids", "pids.max", pids),
        ]
    else:
        writes = [
            ("cpu", "cpu.weight", cpu_weight(limits.cpu_shares)),
            ("cpu", "cpu.max", f"{quota or V2_UNLIMITED} {CPU_PERIOD}"),
            ("memory", "memory.max", limits.memory or V2_UNLIMITED),
            ("pids", "pids.max", pids),
        ]
    limit = "limit_in_bytes" if hierarchy.version == 1 else "max"
    for size, allowed in limits.huge_pages.items():
        writes.append(("hugetlb", f"hugetlb.{page_size(size)}.{limit}", allowed))
    return {name: str(value) for controller, name, value in writes if controller in hierarchy.controllers}


def cpu_weight(shares: int) -> int:
    """cgroup v2's weight (1 to 10000) for v1's shares (2 to 262144), by Kubernetes' formula."""
    return 1 + (min(shares, MAXIMUM_SHARES) - MINIMUM_SHARES) * 9999 // (MAXIMUM_SHARES - MINIMUM_SHARES)


def page_size(size: int) -> str:
    """A size in bytes as the kernel's file names have it: `2MB`."""
    return next(f"{size // unit}{name}" for name, unit in _PAGE_UNITS if size >= unit)


def pod_cgroup(root: str, qos_class: str, uid: str) -> str:
    """The cgroup path of a pod, the same in every hierarchy."""
    return f"{root.rstrip('/')}{_CLASS_PART[qos_class]}/pod{uid}"


def _below(hierarchy: Hierarchy, path: str) -> Path:
    return hierarchy.path / path.lstrip("/")


def _set(file: Path, value: str) -> None:
    """Write a file of a cgroup. A missing file is fine if the value is "no limit"."""
    try:
        descriptor = os.open(file, os.O_WRONLY)
    except FileNotFoundError:
        if value in UNLIMITED:
            return
        raise
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def keyed(text: str) -> dict[str, int]:
    """Parse a file with a name and a number in each line."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def hierarchies(mount: Path, table: Path = MOUNTINFO) -> tuple[Hierarchy, ...]:
    """The cgroup hierarchies mounted at or below `mount`; `table` is a mountinfo file."""
    found: dict[Path, Hierarchy] = {}
    for place, kind, options in read_mounts(table):
        if kind not in ("cgroup", "cgroup2") or not place.is_relative_to(mount):
            continue
        controllers: Iterable[str] = options
        if kind == "cgroup2":
            file = place / _CGROUP2_CONTROLLERS
            controllers = file.read_text().split() if file.exists() else ()
        version = 1 if kind == "cgroup" else 2
        found[place] = Hierarchy(place, version, frozenset(controllers) & (LIMITED_BY | COUNTED_BY))
    return tuple(found.values())


def remove_tree(cgroup: Path) -> bool:
    """Remove a cgroup and those in it; False if one is busy. Directories are removed by rmdir, children
    first; a cgroup's files cannot be deleted. Not recursive, as a container that may make cgroups can nest
    them to any depth."""
    found = [cgroup]
    for each in found:
        with suppress(OSError), os.scandir(each) as entries:
            found += [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    removed = True
    for each in reversed(found):
        try:
            each.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            removed = False
    return removed
