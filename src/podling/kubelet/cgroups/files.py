"""Which files of a cgroup say what it is allowed, in each kind of hierarchy. Pure.

v1      a hierarchy a controller          cpu.shares, memory.limit_in_bytes ...
v2      one hierarchy                     cpu.weight, memory.max ...
hybrid  both at once; each controller is in one of them, and its files are of that hierarchy's version
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from podling.kubelet.cgroups.limits import CPU_PERIOD, MAXIMUM_SHARES, MINIMUM_SHARES, CgroupLimits

V1_UNLIMITED, V2_UNLIMITED = "-1", "max"
UNLIMITED = (V1_UNLIMITED, V2_UNLIMITED, f"{V2_UNLIMITED} {CPU_PERIOD}")
_PAGE_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


class Hierarchy(msgspec.Struct, frozen=True):
    """Where one is mounted, its version (1 or 2), and the controllers to be found in it."""

    path: Path
    version: int
    controllers: frozenset[str]


def files(hierarchy: Hierarchy, limits: CgroupLimits) -> dict[str, str]:
    """File → content, in the order to write them; nothing for controllers that are elsewhere."""
    writes = _v1(limits) if hierarchy.version == 1 else _v2(limits)
    return {name: value for controller, name, value in writes if controller in hierarchy.controllers}


def _v1(limits: CgroupLimits) -> Iterator[tuple[str, str, str]]:
    yield "cpu", "cpu.shares", str(limits.cpu_shares)
    yield "cpu", "cpu.cfs_period_us", str(CPU_PERIOD)
    yield "cpu", "cpu.cfs_quota_us", str(limits.cpu_quota or V1_UNLIMITED)
    yield "memory", "memory.limit_in_bytes", str(limits.memory or V1_UNLIMITED)
    yield "pids", "pids.max", str(limits.pids or V2_UNLIMITED)
    for size, allowed in limits.huge_pages.items():
        yield "hugetlb", f"hugetlb.{page_size(size)}.limit_in_bytes", str(allowed)


def _v2(limits: CgroupLimits) -> Iterator[tuple[str, str, str]]:
    yield "cpu", "cpu.weight", str(cpu_weight(limits.cpu_shares))
    yield "cpu", "cpu.max", f"{limits.cpu_quota or V2_UNLIMITED} {CPU_PERIOD}"
    yield "memory", "memory.max", str(limits.memory or V2_UNLIMITED)
    yield "pids", "pids.max", str(limits.pids or V2_UNLIMITED)
    for size, allowed in limits.huge_pages.items():
        yield "hugetlb", f"hugetlb.{page_size(size)}.max", str(allowed)


def cpu_weight(shares: int) -> int:
    """v2's weight (1 to 10000) for v1's shares (2 to 262144), as every kubelet computes it."""
    return 1 + (min(shares, MAXIMUM_SHARES) - MINIMUM_SHARES) * 9999 // (MAXIMUM_SHARES - MINIMUM_SHARES)


def page_size(size: int) -> str:
    """As the kernel names it in its files: `2MB`."""
    return next(f"{size // unit}{name}" for name, unit in _PAGE_UNITS if size >= unit)
