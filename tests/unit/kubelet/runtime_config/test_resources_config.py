from __future__ import annotations

import pytest

from podling.kubelet.container_types import ContainerType, all_containers
from podling.kubelet.runtime_config.resources_config import (
    cpu_quota,
    cpu_shares,
    linux_resources,
    oom_score_adj,
)
from podling.model.quantity import Quantity

NODE_MEMORY = 1000


def needs(container, requests="", limits=""):
    def amounts(text):
        return {name: Quantity(value) for name, value in (word.split("=") for word in text.split())}

    container.resources.requests, container.resources.limits = amounts(requests), amounts(limits)


@pytest.mark.parametrize(("milli", "shares"), [(0, 2), (1, 2), (100, 102), (1000, 1024), (10**7, 262144)])
def test_shares(milli, shares):
    assert cpu_shares(milli) == shares


@pytest.mark.parametrize(("milli", "quota"), [(0, 0), (1, 1000), (500, 50_000), (2000, 200_000)])
def test_quota(milli, quota):
    assert cpu_quota(milli) == quota


def test_a_containers_resources(scene):
    pod = scene.pod("a")
    needs(pod.spec.containers[0], limits="cpu=500m memory=64Mi")
    made = linux_resources(pod, pod.spec.containers[0], ContainerType.REGULAR, NODE_MEMORY)
    assert (made.cpu_shares, made.cpu_period, made.cpu_quota) == (512, 100_000, 50_000)
    assert made.memory_limit_in_bytes == 64 * 1024**2


OOM = [
    # name of the container asked about, requests of s (sidecar), a and b     score
    ("a", {},                                                  1000),
    ("a", {"a": "memory=300"},                                 700),
    ("b", {"a": "memory=300"},                                 999),
    ("a", {"a": "memory=999"},                                 3),
    ("s", {"s": "memory=100", "a": "memory=600", "b": "memory=500"}, 500),
]  # fmt: skip


@pytest.mark.parametrize(("name", "requests", "score"), OOM)
def test_who_is_killed_first(scene, name, requests, score):
    pod = scene.pod("s* / a b")
    found = {container.name: (kind, container) for kind, container in all_containers(pod)}
    for asking, text in requests.items():
        needs(found[asking][1], text)
    kind, container = found[name]
    assert oom_score_adj(pod, container, kind, NODE_MEMORY) == score


def test_guaranteed_and_critical_pods_are_protected(scene):
    pod = scene.pod("a")
    needs(pod.spec.containers[0], "cpu=1 memory=10", "cpu=1 memory=10")
    assert oom_score_adj(pod, pod.spec.containers[0], ContainerType.REGULAR, NODE_MEMORY) == -997
    critical = scene.pod("a", priority=2_000_000_000)
    assert oom_score_adj(critical, critical.spec.containers[0], ContainerType.REGULAR, NODE_MEMORY) == -997
