"""The files of v1, hybrid and v2, as tables (R-INIT-9, R-SYS-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.kubelet.host.cgroups import CgroupLimits, Hierarchy, cpu_weight, files, page_size


def mounted(*described: str) -> list[Hierarchy]:
    """`1:cpu,memory`: version and controllers."""
    parts = (word.partition(":") for word in described)
    return [Hierarchy(Path("/"), int(version), frozenset(c.split(","))) for version, _, c in parts]


V1 = mounted("1:cpu", "1:memory", "1:pids", "1:hugetlb")
HYBRID = mounted("1:cpu", "1:memory", "1:pids", "2:hugetlb")
V2 = mounted("2:cpu,memory,pids,hugetlb")

LIMITED = CgroupLimits(512, 50_000, 1 << 20, 100, {2 << 20: 4 << 20})
FREE = CgroupLimits()

OF_V1 = {
    "cpu.shares": "512",
    "cpu.cfs_period_us": "100000",
    "cpu.cfs_quota_us": "50000",
    "memory.limit_in_bytes": "1048576",
    "pids.max": "100",
}
FREE_V1 = {
    "cpu.shares": "2",
    "cpu.cfs_period_us": "100000",
    "cpu.cfs_quota_us": "-1",
    "memory.limit_in_bytes": "-1",
    "pids.max": "max",
}
TABLE = [
    ("v1", V1, LIMITED, OF_V1 | {"hugetlb.2MB.limit_in_bytes": "4194304"}),
    ("v1", V1, FREE, FREE_V1),
    ("hybrid", HYBRID, LIMITED, OF_V1 | {"hugetlb.2MB.max": "4194304"}),
    ("hybrid", HYBRID, FREE, FREE_V1),
    (
        "v2",
        V2,
        LIMITED,
        {
            "cpu.weight": "20",
            "cpu.max": "50000 100000",
            "memory.max": "1048576",
            "pids.max": "100",
            "hugetlb.2MB.max": "4194304",
        },
    ),
    ("v2", V2, FREE, {"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"}),
]


@pytest.mark.parametrize(("kind", "hierarchies", "limits", "expected"), TABLE)
def test_what_is_written(
    kind: str, hierarchies: list[Hierarchy], limits: CgroupLimits, expected: dict[str, str]
) -> None:
    written = [(name, value) for hierarchy in hierarchies for name, value in files(hierarchy, limits).items()]
    assert sorted(written) == sorted(expected.items())


def test_nothing_is_written_where_nothing_limits() -> None:
    (freezer,), (huge_pages,) = mounted("1:freezer"), mounted("2:hugetlb")
    assert files(freezer, LIMITED) == {}
    assert files(huge_pages, FREE) == {}


@pytest.mark.parametrize(("shares", "weight"), [(2, 1), (1024, 39), (262_144, 10_000), (10**6, 10_000)])
def test_weights(shares: int, weight: int) -> None:
    assert cpu_weight(shares) == weight


@pytest.mark.parametrize(("size", "name"), [(64 << 10, "64KB"), (2 << 20, "2MB"), (1 << 30, "1GB")])
def test_pages(size: int, name: str) -> None:
    assert page_size(size) == name
