"""Finds out what containerd must be told about this machine."""

from __future__ import annotations

import os
from pathlib import Path

from podling.cri.containerd_config import HostFacts
from podling.cri.mounts import overlay_works

_CAP_SYS_RESOURCE = 24


def detect(root: Path) -> HostFacts:
    """`root` is where containerd will keep its snapshots, and exists."""
    return HostFacts(
        restrict_oom_score_adj=not has_capability(Path("/proc/self/status").read_text(), _CAP_SYS_RESOURCE),
        disable_cgroup=not cgroups_writable(Path("/sys/fs/cgroup")),
        snapshotter="overlayfs" if overlay_works(root) else "native",
    )


def cgroups_writable(mount: Path) -> bool:
    """In v1 and hybrid `mount` itself is often read-only, and the hierarchies mounted below it are not."""
    if not mount.is_dir():
        return False
    places = [mount, *(Path(entry.path) for entry in os.scandir(mount) if entry.is_dir())]
    return any(os.access(place / "cgroup.procs", os.W_OK) for place in places)


def has_capability(status: str, number: int) -> bool:
    """Whether /proc/PID/status says that the effective set has capability `number`."""
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> number & 1)
