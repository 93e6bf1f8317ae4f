from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.kubelet.cri_config.container import (
    linux_resources,
    oom_score_adj,
    overhead_resources,
    sandbox_resources,
)
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.sandbox import NodeFacts
from podling.model.quantity import Quantity
from podling.model.types.container import Container, EphemeralContainer, ResourceRequirements

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

NODE_MEMORY = 1000


def needs(container: Container | EphemeralContainer, requests: str = "", limits: str = "") -> None:
    def amounts(text: str) -> dict[str, Quantity]:
        return {name: Quantity(value) for name, value in (word.split("=") for word in text.split())}

    container.resources.requests, container.resources.limits = amounts(requests), amounts(limits)


NODE = NodeFacts("n1", memory_bytes=NODE_MEMORY)


def test_a_containers_resources(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    needs(pod.spec.containers[0], limits="cpu=500m memory=64Mi")
    made = linux_resources(pod, pod.spec.containers[0], ContainerType.REGULAR, NODE)
    assert (made.cpu_shares, made.cpu_period, made.cpu_quota) == (512, 100_000, 50_000)
    assert made.memory_limit_in_bytes == 64 * 1024**2
    assert (made.memory_swap_limit_in_bytes, dict(made.unified)) == (0, {})


def test_a_container_without_limits_is_told_those_of_its_pod(scene: type[Scene]) -> None:
    pod = scene.pod("a b")
    needs(pod.spec.containers[0], limits="memory=1Mi")
    pod.spec.resources = ResourceRequirements(limits={"memory": Quantity("8Mi"), "cpu": Quantity("2")})
    made = [linux_resources(pod, c, ContainerType.REGULAR, NODE) for c in pod.spec.containers]
    assert [m.memory_limit_in_bytes for m in made] == [1024**2, 8 * 1024**2]
    assert [m.cpu_quota for m in made] == [200_000, 200_000]


def test_no_container_swaps_and_all_of_it_is_killed_together_on_v2(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    needs(pod.spec.containers[0], limits="memory=1Mi")
    settings = {"memory.oom.group": "1", "memory.swap.max": "0"}
    v1, v2 = NodeFacts("n1", swap_is_limited=True), NodeFacts("n1", cgroup2_settings=settings)
    made = [linux_resources(pod, pod.spec.containers[0], ContainerType.REGULAR, node) for node in (v1, v2)]
    assert [m.memory_swap_limit_in_bytes for m in made] == [1024**2, 0]
    assert [dict(m.unified) for m in made] == [{}, settings]


def test_a_container_has_the_huge_pages_it_asked_for_and_no_others(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    needs(pod.spec.containers[0], limits="hugepages-2Mi=4Mi")
    node = NodeFacts("n1", page_sizes=(2 << 20, 1 << 30))
    made = linux_resources(pod, pod.spec.containers[0], ContainerType.REGULAR, node)
    assert {h.page_size: h.limit for h in made.hugepage_limits} == {"2MB": 4 << 20, "1GB": 0}


def test_a_sandbox_is_told_its_pods_sum_and_overhead_apart(scene: type[Scene]) -> None:
    pod = scene.pod("i / a b", overhead={"cpu": Quantity("1"), "memory": Quantity("10")})
    needs(pod.spec.init_containers[0], limits="cpu=4")
    for container in pod.spec.containers:
        needs(container, requests="cpu=500m", limits="cpu=1 memory=100")
    made = sandbox_resources(pod)
    assert (made.cpu_shares, made.cpu_quota, made.memory_limit_in_bytes) == (1024, 400_000, 200)
    overhead = overhead_resources(pod)
    assert overhead and overhead.memory_limit_in_bytes == 10
    assert overhead_resources(scene.pod("a")) is None


OOM = [
    # name of the container asked about, requests of s (sidecar), a and b     score
    ("a", {},                                                  1000),
    ("a", {"a": "memory=300"},                                 700),
    ("b", {"a": "memory=300"},                                 999),
    ("a", {"a": "memory=999"},                                 3),
    ("s", {"s": "memory=100", "a": "memory=600", "b": "memory=500"}, 500),
]  # fmt: skip


@pytest.mark.parametrize(("name", "requests", "score"), OOM)
def test_who_is_killed_first(scene: type[Scene], name: str, requests: dict[str, str], score: int) -> None:
    pod = scene.pod("s* / a b")
    found = {container.name: (kind, container) for kind, container in all_containers(pod)}
    for asking, text in requests.items():
        needs(found[asking][1], text)
    kind, container = found[name]
    assert oom_score_adj(pod, container, kind, NODE_MEMORY) == score


def test_what_a_pod_asks_for_beyond_its_containers_protects_them_evenly(scene: type[Scene]) -> None:
    pod = scene.pod("a b")
    needs(pod.spec.containers[0], "memory=100")
    pod.spec.resources = ResourceRequirements(requests={"memory": Quantity("500")})
    scores = [oom_score_adj(pod, c, ContainerType.REGULAR, NODE_MEMORY) for c in pod.spec.containers]
    assert scores == [700, 800]


def test_guaranteed_and_node_critical_pods_are_protected(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    needs(pod.spec.containers[0], "cpu=1 memory=10", "cpu=1 memory=10")
    assert oom_score_adj(pod, pod.spec.containers[0], ContainerType.REGULAR, NODE_MEMORY) == -997
    for name, score in (("system-node-critical", -997), ("system-cluster-critical", 1000)):
        critical = scene.pod("a", priority=2_000_000_000, priority_class_name=name)
        container = critical.spec.containers[0]
        assert oom_score_adj(critical, container, ContainerType.REGULAR, NODE_MEMORY) == score
