from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podling.model.types.node import Node
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.score import balanced, best, least_allocated, rate

Make = Callable[..., Any]


def choice(pod: PodInfo, cluster: Cluster) -> str:
    nodes = list(cluster.nodes.values())
    return best(pod, cluster, nodes, [rate(pod, node) for node in nodes]).name


def test_the_emptier_node_is_better(
    pod: Callable[..., PodInfo], node: Callable[..., Node], cluster: Make
) -> None:
    nodes = cluster(node("full"), node("empty"), full=[pod("there", cpu="1", memory="1Gi")])
    assert choice(pod("new", cpu="500m"), nodes) == "empty"


def test_pods_that_ask_for_nothing_are_spread_too(
    pod: Callable[..., PodInfo], node: Callable[..., Node], cluster: Make
) -> None:
    nodes = cluster(node("full"), node("empty"), full=[pod("one"), pod("two")])
    assert choice(pod("new"), nodes) == "empty"


def test_a_preferred_node_is_better(
    pod: Callable[..., PodInfo], node: Callable[..., Node], cluster: Make
) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    rule = [{"weight": 10, "preference": term}]
    wanting = pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rule}})
    assert choice(wanting, cluster(node("plain"), node("fast", disk="ssd"))) == "fast"


def test_a_node_with_a_soft_taint_is_worse(
    pod: Callable[..., PodInfo], node: Callable[..., Node], cluster: Make
) -> None:
    spec = {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}
    nodes = cluster(node("tainted", spec), node("clean"), clean=[pod("there", cpu="200m")])
    assert choice(pod("new"), nodes) == "clean"
    assert choice(pod("new", tolerations=[{"operator": "Exists"}]), nodes) == "tainted"


def test_among_equals_the_first(
    pod: Callable[..., PodInfo], node: Callable[..., Node], cluster: Make
) -> None:
    assert choice(pod("new"), cluster(node("a"), node("b"))) == "a"


def test_free_room_and_balance(pod: Callable[..., PodInfo], node_info: Callable[..., NodeInfo]) -> None:
    """Of 2 CPUs and 4 GiB: half of the CPU and a quarter of the memory would be used."""
    wanting, info = pod(cpu="1", memory="1Gi"), node_info()
    assert least_allocated(wanting, info) == (50 + 75) // 2
    assert balanced(wanting, info) == 87
