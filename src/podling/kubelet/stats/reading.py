"""Reads the files of cgroups and processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podling.kubelet.cgroups.files import Hierarchy
from podling.kubelet.stats.usage import FILES, Files, Interface, interfaces

PROC = Path("/proc")
PRESSURES = ("cpu", "memory", "io")


class CgroupReader:
    def __init__(self, hierarchies: Sequence[Hierarchy]) -> None:
        self._files = [
            (hierarchy.path, FILES[controller, hierarchy.version])
            for hierarchy in hierarchies
            for controller in sorted(hierarchy.controllers)
            if (controller, hierarchy.version) in FILES
        ]

    def read(self, cgroup: str) -> Files:
        """What there is of it; nothing when it is gone."""
        found = {}
        for hierarchy, names in self._files:
            for name in names:
                try:
                    found[name] = (hierarchy / cgroup.lstrip("/") / name).read_text()
                except OSError:
                    continue
        return found

    def node_pressure(self) -> Files:
        """The node's, named like a cgroup's; only where cgroups have theirs: in cgroup v2."""
        found = {}
        for name in PRESSURES if any("cpu.pressure" in names for _, names in self._files) else ():
            try:
                found[f"{name}.pressure"] = (PROC / "pressure" / name).read_text()
            except OSError:
                continue
        return found

    def network(self, cgroup: str) -> list[Interface]:
        """Of the network the processes in it live in; nothing when there are none."""
        for hierarchy, _ in self._files[:1]:
            try:
                processes = (hierarchy / cgroup.lstrip("/") / "cgroup.procs").read_text().split()
                return interfaces((PROC / processes[0] / "net/dev").read_text())
            except (OSError, IndexError):
                return []
        return []


def process_ids(proc: Path = PROC) -> tuple[int, int]:
    """How many there are, and may be."""
    running = (proc / "loadavg").read_text().split()[3].partition("/")[2]
    limits = [int((proc / "sys/kernel" / name).read_text()) for name in ("pid_max", "threads-max")]
    return int(running), min(limits)
