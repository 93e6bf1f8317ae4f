from __future__ import annotations

from collections.abc import Callable

from podling.model.pod import Pod
from podling.scheduler.node_info import NodeInfo
from podling.scheduler.score import best


def test_the_emptier_node_is_better(pod: Callable[..., Pod], node: Callable[..., NodeInfo]) -> None:
    full, empty = node("full"), node("empty")
    full.add(pod("there", cpu="1", memory="1Gi"))
    assert best(pod("new", cpu="500m"), [full, empty]) is empty


def test_a_preferred_node_is_better(pod: Callable[..., Pod], node: Callable[..., NodeInfo]) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    rule = [{"weight": 10, "preference": term}]
    wanting = pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rule}})
    plain, fast = node("plain"), node("fast", disk="ssd")
    assert best(wanting, [plain, fast]) is fast


def test_among_equals_fewer_pods_then_a_fixed_order(
    pod: Callable[..., Pod], node: Callable[..., NodeInfo]
) -> None:
    a, b = node("a"), node("b")
    assert best(pod("new"), [a, b]) is best(pod("new"), [b, a])
    b.add(pod("there"))
    assert best(pod("new"), [a, b]) is a
