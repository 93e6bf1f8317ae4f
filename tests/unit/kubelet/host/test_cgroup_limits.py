"""What pods, QoS classes and the node allow (R-INIT-9, R-EPH-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.kubelet.host.cgroups import (
    CgroupLimits,
    cpu_quota,
    cpu_shares,
    limits_of_classes,
    limits_of_node,
    limits_of_pod,
    on_node,
)
from podling.model.quantity import Quantity
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene


def amounts(text: str) -> dict[str, Quantity]:
    return {name: Quantity(value) for name, value in (word.split("=") for word in text.split())}


def resources(text: str) -> ResourceRequirements:
    """`requests | limits`."""
    requests, _, limits = text.partition("|")
    return ResourceRequirements(requests=amounts(requests), limits=amounts(limits))


def pod_of(scene: type[Scene], shape: str, *containers: str, whole: str = "", overhead: str = "") -> Pod:
    pod = scene.pod(shape, overhead=amounts(overhead), resources=resources(whole) if whole else None)
    for container, text in zip((*pod.spec.init_containers, *pod.spec.containers), containers, strict=True):
        container.resources = resources(text)
    return pod


BOTH = "cpu=1 memory=100|cpu=1 memory=100"
PODS = [
    # shape      containers, init first                            shares  quota    memory
    ("a",       [""],                                              2,      None,    None),
    ("a",       [BOTH],                                            1024,   100_000, 100),
    ("a b",     [BOTH, BOTH],                                      2048,   200_000, 200),
    ("a",       ["cpu=250m|"],                                     256,    None,    None),
    ("a",       ["cpu=250m memory=10|memory=50"],                  256,    None,    50),
    ("a b",     ["memory=10|memory=50", "memory=10|"],             2,      None,    None),
    ("a b",     ["cpu=1|cpu=2", "cpu=1|cpu=1"],                    2048,   300_000, None),
    ("a",       ["cpu=1m|cpu=1m"],                                 2,      1000,    None),
    ("i / a",   ["cpu=4 memory=9|cpu=4 memory=9", BOTH],           4096,   400_000, 100),
    ("i / a",   ["", BOTH],                                        1024,   None,    None),
    ("s* / a",  [BOTH, BOTH],                                      2048,   200_000, 200),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "containers", "shares", "quota", "memory"), PODS)
def test_a_pods_limits_are_its_effective_resources(
    scene: type[Scene], shape: str, containers: list[str], shares: int, quota: int | None, memory: int | None
) -> None:
    """R-INIT-9"""
    pod = pod_of(scene, shape, *containers)
    assert limits_of_pod(pod) == CgroupLimits(shares, quota, memory)


def test_overhead_is_the_pods_too(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a", BOTH, overhead="cpu=500m memory=20")
    assert limits_of_pod(pod) == CgroupLimits(1536, 150_000, 120)


def test_what_the_pod_says_of_itself_stands_for_its_containers(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a b", "", "", whole="cpu=1|memory=80")
    assert limits_of_pod(pod) == CgroupLimits(1024, None, 80)


def test_pids_are_the_nodes_word_and_huge_pages_what_was_asked_for(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a", "hugepages-2Mi=4Mi cpu=1|hugepages-2Mi=4Mi")
    made = on_node(limits_of_pod(pod), pids=64, page_sizes=(2 << 20, 1 << 30))
    assert (made.pids, made.huge_pages) == (64, {2 << 20: 4 << 20, 1 << 30: 0})


def test_the_node_keeps_what_is_reserved_and_not_what_eviction_watches_over() -> None:
    made = limits_of_node(
        amounts("cpu=4 memory=1000 hugepages-2Mi=4Mi pods=110"), amounts("cpu=1 memory=300")
    )
    assert made == CgroupLimits(3072, None, 700, huge_pages={2 << 20: 4 << 20})


def test_classes_weigh_what_their_pods_ask_for() -> None:
    assert limits_of_classes(1500) == {"Burstable": CgroupLimits(1536), "BestEffort": CgroupLimits(2)}


@pytest.mark.parametrize(("milli", "shares"), [(0, 2), (1, 2), (100, 102), (1000, 1024), (10**7, 262144)])
def test_shares(milli: int, shares: int) -> None:
    assert cpu_shares(milli) == shares


@pytest.mark.parametrize(("milli", "quota"), [(0, 0), (1, 1000), (500, 50_000), (2000, 200_000)])
def test_quota(milli: int, quota: int) -> None:
    assert cpu_quota(milli) == quota
