"""CPU, memory, pressure, processes and network interfaces, read from the files of cgroups (v1 and v2) and
/proc.

The functions are pure: they turn the text of files into numbers. A value whose file is missing is None; a
counter that is missing in a file is 0. `CgroupReader` reads the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from podling.kubelet.host.cgroups import Hierarchy, keyed

Files = Mapping[str, str]
"""The content of a cgroup's files by file name."""

FILES = {
    ("cpuacct", 1): ("cpuacct.usage",),
    ("cpu", 2): ("cpu.stat", "cpu.pressure", "memory.pressure", "io.pressure"),
    ("memory", 1): ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.stat"),
    ("memory", 2): ("memory.current", "memory.max", "memory.stat", "memory.swap.current"),
    ("pids", 1): ("pids.current",),
    ("pids", 2): ("pids.current",),
}
"""The files to read, by controller and version of its hierarchy. Every cgroup v2 has the pressure files."""

NO_LIMIT = 1 << 62
"""Without a limit, v1 shows a number near 2**63."""
TICKS = 100
"""The kernel's USER_HZ, the same on every machine Linux runs on today."""
PROC = Path("/proc")
PRESSURES = ("cpu", "memory", "io")


class Memory(NamedTuple):
    """Bytes, except for the page faults. `limit` is None without one, `swap` if it is not counted."""

    usage: int
    working_set: int
    rss: int
    page_faults: int
    major_page_faults: int
    limit: int | None = None
    swap: int | None = None


class Interface(NamedTuple):
    """The counters of a network interface since it was made."""

    name: str
    rx_bytes: int
    rx_errors: int
    tx_bytes: int
    tx_errors: int


class Stall(NamedTuple):
    """`total` is microseconds since the start; the averages are percent of the last 10, 60 and 300 s."""

    total: int
    avg10: float
    avg60: float
    avg300: float


class PressureStall(NamedTuple):
    """Pressure stall information of a resource: time in which some, or all, tasks waited for it."""

    some: Stall
    full: Stall


def pressure(text: str) -> PressureStall | None:
    """Parse a pressure file of a cgroup v2 or of /proc/pressure; None if it has not both lines."""
    rows = (line.split() for line in text.splitlines())
    told = {row[0]: dict(pair.split("=") for pair in row[1:]) for row in rows if row}
    stalls = {
        name: Stall(int(row["total"]), float(row["avg10"]), float(row["avg60"]), float(row["avg300"]))
        for name, row in told.items()
    }
    if stalls.keys() != {"some", "full"}:
        return None
    return PressureStall(stalls["some"], stalls["full"])


def cpu_nanoseconds(files: Files) -> int | None:
    """CPU time of all that has run in the cgroup; None without the file."""
    if "cpuacct.usage" in files:
        return int(files["cpuacct.usage"])
    if "cpu.stat" in files:
        return keyed(files["cpu.stat"]).get("usage_usec", 0) * 1000
    return None


def memory(files: Files) -> Memory | None:
    """Memory of a cgroup; None without the files. The working set is the usage less inactive file pages."""
    if "memory.usage_in_bytes" in files:
        usage, limit = int(files["memory.usage_in_bytes"]), files.get("memory.limit_in_bytes", "")
        stat, total = keyed(files.get("memory.stat", "")), "total_"
        rss, swap = stat.get("total_rss", 0), stat.get("total_swap")
    elif "memory.current" in files:
        usage, limit = int(files["memory.current"]), files.get("memory.max", "")
        stat, total = keyed(files.get("memory.stat", "")), ""
        swapped = files.get("memory.swap.current")
        rss, swap = stat.get("anon", 0), int(swapped) if swapped else None
    else:
        return None
    bound = int(limit) if limit.strip().isdigit() else NO_LIMIT
    return Memory(
        usage=usage,
        working_set=max(usage - stat.get(f"{total}inactive_file", 0), 0),
        rss=rss,
        page_faults=stat.get(f"{total}pgfault", 0),
        major_page_faults=stat.get(f"{total}pgmajfault", 0),
        limit=bound if bound < NO_LIMIT else None,
        swap=swap,
    )


def processes(files: Files) -> int | None:
    return int(files["pids.current"]) if "pids.current" in files else None


def meminfo_bytes(text: str) -> dict[str, int]:
    """The sizes in /proc/meminfo, in bytes; what it counts in pages is left out."""
    rows = (line.split() for line in text.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}


def node_memory(meminfo: str, vmstat: str) -> Memory:
    """Memory of the machine, from /proc, so that it is the same for both cgroup versions."""
    sizes = meminfo_bytes(meminfo)
    faults = keyed(vmstat)
    usage = sizes["MemTotal"] - sizes["MemFree"]
    return Memory(
        usage=usage,
        working_set=max(usage - sizes.get("Inactive(file)", 0), 0),
        rss=sizes.get("AnonPages", 0),
        page_faults=faults.get("pgfault", 0),
        major_page_faults=faults.get("pgmajfault", 0),
        limit=sizes["MemTotal"],
        swap=sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0),
    )


def node_cpu_nanoseconds(stat: str) -> int:
    """Busy CPU time of all cores: the first line of /proc/stat without idle, iowait, and guest, which user
    already includes."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.splitlines()[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) * (1_000_000_000 // TICKS)


def interfaces(dev: str) -> list[Interface]:
    """/proc/net/dev, without loopback."""
    found = []
    for line in dev.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = [int(number) for number in numbers.split()]
        if name.strip() != "lo" and len(fields) >= 11:
            found.append(Interface(name.strip(), fields[0], fields[2], fields[8], fields[10]))
    return found


class CgroupReader:
    """Reads the files of cgroups in all hierarchies."""

    def __init__(self, hierarchies: Sequence[Hierarchy]) -> None:
        self._files = [
            (hierarchy.path, FILES[controller, hierarchy.version])
            for hierarchy in hierarchies
            for controller in sorted(hierarchy.controllers)
            if (controller, hierarchy.version) in FILES
        ]

    def read(self, cgroup: str) -> Files:
        """The files that exist; none if the cgroup is gone."""
        found = {}
        for hierarchy, names in self._files:
            for name in names:
                try:
                    found[name] = (hierarchy / cgroup.lstrip("/") / name).read_text()
                except OSError:
                    continue
        return found

    def node_pressure(self) -> Files:
        """The node's pressure files, named like a cgroup's. Empty on cgroup v1, whose cgroups have none."""
        found = {}
        for name in PRESSURES if any("cpu.pressure" in names for _, names in self._files) else ():
            try:
                found[f"{name}.pressure"] = (PROC / "pressure" / name).read_text()
            except OSError:
                continue
        return found

    def network(self, cgroup: str) -> list[Interface]:
        """The interfaces of the network namespace of the cgroup's first process; none without a process."""
        for hierarchy, _ in self._files[:1]:
            try:
                processes = (hierarchy / cgroup.lstrip("/") / "cgroup.procs").read_text().split()
                return interfaces((PROC / processes[0] / "net/dev").read_text())
            except (OSError, IndexError):
                return []
        return []


def process_ids(proc: Path = PROC) -> tuple[int, int]:
    """The numbers of running and of allowed processes."""
    running = (proc / "loadavg").read_text().split()[3].partition("/")[2]
    limits = [int((proc / "sys/kernel" / name).read_text()) for name in ("pid_max", "threads-max")]
    return int(running), min(limits)
