"""How much the node has left, from the kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.kubelet.eviction.thresholds import NodeReadings, Reading
from podling.kubelet.host.cgroups import Hierarchy
from podling.kubelet.host.usage import CgroupReader
from podling.kubelet.options.signals import ALLOCATABLE_MEMORY, IMAGEFS, MEMORY, NODEFS, PIDS


def write(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text)


@pytest.fixture
def readings(tmp_path: Path) -> NodeReadings:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    write(proc, meminfo="MemTotal: 1000 kB\nMemFree: 300 kB\nInactive(file): 100 kB\n")
    write(proc, loadavg="0.1 0.1 0.1 2/345 6789\n")
    write(proc / "sys/kernel", **{"pid_max": "4194304\n", "threads-max": "1000\n"})
    memory = {"memory.current": "500\n", "memory.max": "800\n", "memory.stat": "inactive_file 200\n"}
    write(cgroup / "pods", **memory)
    reader = CgroupReader([Hierarchy(cgroup, 2, frozenset({"memory"}))])
    return NodeReadings(tmp_path, "/pods", reader, proc)


def test_images_may_have_a_file_system_of_their_own(readings: NodeReadings, tmp_path: Path) -> None:
    assert not readings.images_apart, "nobody has said yet where images are"
    readings.images = tmp_path / "cgroup"
    assert not readings.images_apart
    readings.images = Path("/proc")
    assert readings.images_apart


def test_what_is_left(readings: NodeReadings) -> None:
    found = readings.read()
    assert found[MEMORY] == Reading(400 * 1024, 1000 * 1024)
    assert found[ALLOCATABLE_MEMORY] == Reading(500, 800)
    assert found[PIDS] == Reading(655, 1000)
    assert 0 < found[NODEFS].available <= found[NODEFS].capacity
    assert IMAGEFS not in found, "nobody has said yet where images are"


def test_what_cannot_be_read_is_left_out(readings: NodeReadings, tmp_path: Path) -> None:
    (tmp_path / "proc/loadavg").unlink()
    (tmp_path / "cgroup/pods/memory.max").write_text("max\n")
    readings.images = tmp_path / "gone"
    assert not {PIDS, ALLOCATABLE_MEMORY, IMAGEFS} & set(readings.read())
