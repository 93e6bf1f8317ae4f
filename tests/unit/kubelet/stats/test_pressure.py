"""How long what runs waited for what it needs: from the files of cgroup v2 to the summary and to metrics."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.core import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from podling.kubelet.host.cgroups import Hierarchy
from podling.kubelet.host.machine import this_machine
from podling.kubelet.host.usage import CgroupReader, Memory
from podling.kubelet.metrics.exposition import cadvisor_metrics
from podling.kubelet.stats.summary import (
    ContainerStats,
    NodeStats,
    PodReference,
    PodStats,
    Rates,
    Summary,
    cpu_stats,
    io_stats,
    memory_stats,
)
from podling.model.codec.json import to_data

NOW = "2026-01-02T03:04:05Z"


def told(some: int, full: int) -> str:
    averages = "avg10=1.50 avg60=0.00 avg300=0.00"
    return f"some {averages} total={some}\nfull {averages} total={full}\n"


def test_it_is_read_where_cgroups_count_it(tmp_path: Path) -> None:
    controllers = frozenset({"cpu"})
    (tmp_path / "pod").mkdir()
    for name in ("cpu", "memory", "io"):
        (tmp_path / "pod" / f"{name}.pressure").write_text(told(1, 0))
    old, new = [CgroupReader([Hierarchy(tmp_path, version, controllers)]) for version in (1, 2)]
    assert new.read("/pod") == {f"{name}.pressure": told(1, 0) for name in ("cpu", "memory", "io")}
    assert new.node_pressure().keys() <= {"cpu.pressure", "memory.pressure", "io.pressure"}
    assert old.read("/pod") == {}
    assert old.node_pressure() == {}


def stats() -> tuple[ContainerStats, ContainerStats]:
    """One of a cgroup that has it, one of a cgroup that has not."""
    memory = Memory(1, 1, 1, 1, 1)
    counted = ContainerStats(
        name="app",
        cpu=cpu_stats(1, Rates(), "a", 1.0, NOW, told(2_000_000, 1_000_000)),
        memory=memory_stats(memory, NOW, told(3_000_000, 0)),
        io=io_stats(told(5_000_000, 4_000_000), NOW),
    )
    return counted, ContainerStats(name="old", memory=memory_stats(memory, NOW), io=io_stats("", NOW))


def test_the_summary_shows_it_beside_what_is_used() -> None:
    counted, old = (to_data(each) for each in stats())
    average = {"avg10": 1.5, "avg60": 0.0, "avg300": 0.0}
    some, full = {"total": 5_000_000, **average}, {"total": 4_000_000, **average}
    assert counted["io"] == {"time": NOW, "psi": {"full": full, "some": some}}
    assert counted["cpu"]["psi"]["full"]["total"] == 1_000_000
    assert counted["memory"]["psi"]["some"]["total"] == 3_000_000
    assert "io" not in old
    assert "psi" not in old["memory"]


def test_it_is_told_as_metrics_in_seconds() -> None:
    counted, old = stats()
    pod = PodStats(
        PodReference(name="web", namespace="ns", uid="u"), containers=[counted, old], cpu=counted.cpu
    )
    registry = CollectorRegistry()

    class Source(Collector):
        def collect(self) -> Iterable[Metric]:
            return cadvisor_metrics(Summary(NodeStats(), [pod]), this_machine(Path("/")))

    registry.register(Source())
    lines = [
        line.replace("container_pressure_", "")
        for line in generate_latest(registry).decode().splitlines()
        if line.startswith("container_pressure_")
    ]
    app, whole = [f'{{container="{name}",namespace="ns",pod="web"}}' for name in ("app", "")]
    assert sorted(lines) == sorted(
        [
            f"cpu_waiting_seconds_total{whole} 2.0",
            f"cpu_waiting_seconds_total{app} 2.0",
            f"cpu_stalled_seconds_total{whole} 1.0",
            f"cpu_stalled_seconds_total{app} 1.0",
            f"memory_waiting_seconds_total{app} 3.0",
            f"memory_stalled_seconds_total{app} 0.0",
            f"io_waiting_seconds_total{app} 5.0",
            f"io_stalled_seconds_total{app} 4.0",
        ]
    )
