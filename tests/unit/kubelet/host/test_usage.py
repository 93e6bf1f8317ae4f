"""What the kernel's files say is used, in each version of cgroups."""

from __future__ import annotations

import pytest

from podling.kubelet.host.usage import (
    Interface,
    Memory,
    PressureStall,
    Stall,
    cpu_nanoseconds,
    interfaces,
    memory,
    node_cpu_nanoseconds,
    node_memory,
    pressure,
    processes,
)

V1_STAT = (
    "cache 5\nrss 1\ntotal_inactive_file 30\ntotal_rss 40\ntotal_swap 7\n"
    "total_pgfault 8\ntotal_pgmajfault 2\n"
)
V2_STAT = "anon 40\nfile 60\ninactive_file 30\npgfault 8\npgmajfault 2\n"


def v1(limit: str = "9223372036854771712") -> dict[str, str]:
    return {
        "memory.usage_in_bytes": "100\n",
        "memory.limit_in_bytes": f"{limit}\n",
        "memory.stat": V1_STAT,
    }


def v2(limit: str = "max", **more: str) -> dict[str, str]:
    return {"memory.current": "100\n", "memory.max": f"{limit}\n", "memory.stat": V2_STAT, **more}


@pytest.mark.parametrize(
    ("files", "known"),
    [
        (v1(), Memory(100, 70, 40, 8, 2, None, 7)),
        (v1("200"), Memory(100, 70, 40, 8, 2, 200, 7)),
        (v2(), Memory(100, 70, 40, 8, 2, None, None)),
        (v2("200", **{"memory.swap.current": "7\n"}), Memory(100, 70, 40, 8, 2, 200, 7)),
        ({}, None),
    ],
    ids=["v1", "v1 limited", "v2", "v2 limited, with swap", "not counted"],
)
def test_memory_of_a_cgroup(files: dict[str, str], known: Memory | None) -> None:
    assert memory(files) == known


def test_the_working_set_is_never_less_than_nothing() -> None:
    """The two files are not read at the same moment."""
    used = memory({"memory.current": "10", "memory.stat": "inactive_file 30\n"})
    assert used is not None
    assert used.working_set == 0


@pytest.mark.parametrize(
    ("files", "spent"),
    [
        ({"cpuacct.usage": "1234\n"}, 1234),
        ({"cpu.stat": "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"}, 5000),
        ({}, None),
    ],
    ids=["v1", "v2", "not counted"],
)
def test_cpu_of_a_cgroup(files: dict[str, str], spent: int | None) -> None:
    assert cpu_nanoseconds(files) == spent


def test_processes_of_a_cgroup() -> None:
    assert (processes({"pids.current": "3\n"}), processes({})) == (3, None)


def test_memory_of_the_node() -> None:
    meminfo = (
        "MemTotal:  1000 kB\nMemFree:  400 kB\nInactive(file):  100 kB\nAnonPages: 50 kB\n"
        "HugePages_Total: 0\n"
    )
    used = node_memory(meminfo, "pgfault 8\npgmajfault 2\nnr_free_pages 4\n")
    assert used == Memory(600 * 1024, 500 * 1024, 50 * 1024, 8, 2, 1000 * 1024, 0)


def test_cpu_of_the_node() -> None:
    assert node_cpu_nanoseconds("cpu  1 2 3 100 50 4 5 6 7 8\ncpu0 1 1 1\n") == 21 * 10_000_000


def test_interfaces() -> None:
    dev = (
        "Inter-|   Receive   |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs\n"
        "    lo:     100       1    0    0    0     0          0         0      100       1    0 0 0 0 0 0\n"
        "  eth0:    2000      20    1    0    0     0          0         0     3000      30    2 0 0 0 0 0\n"
    )
    assert interfaces(dev) == [Interface("eth0", 2000, 1, 3000, 2)]


SOME = "some avg10=6.79 avg60=13.65 avg300=33.47 total=1628728845\n"
FULL = "full avg10=0.00 avg60=0.50 avg300=0.00 total=12\n"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (SOME + FULL, PressureStall(Stall(1628728845, 6.79, 13.65, 33.47), Stall(12, 0.0, 0.5, 0.0))),
        (SOME, None),
        ("", None),
    ],
    ids=["v2", "a kernel that counts only some for the cpu", "v1"],
)
def test_pressure(text: str, known: PressureStall | None) -> None:
    assert pressure(text) == known
