"""Whom a more important pod preempts (R-SYS-3). Nodes have 2 CPUs; a pod is written `name: priority, cpu`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.types.meta import LabelSelectorRequirement
from podling.model.types.node import Node
from podling.model.types.policy import PodDisruptionBudget
from podling.scheduler.cluster import Cluster
from podling.scheduler.decision import Evaluations, decide
from podling.scheduler.filter import Refusal
from podling.scheduler.info import PodInfo
from podling.scheduler.preemption import candidates, choose, ineligible

Pods = dict[str, list[tuple[str, int, str]]]


def budget(allowed: int, labels: dict[str, str], disrupted: tuple[str, ...] = ()) -> PodDisruptionBudget:
    gone = dict.fromkeys(disrupted, "2026-01-02T03:04:05Z")
    body = {
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": gone},
    }
    return from_data(body, PodDisruptionBudget)


@pytest.fixture
def full(
    node: Callable[..., Node], cluster: Callable[..., Cluster], pod: Callable[..., PodInfo]
) -> Callable[[Pods], Cluster]:
    def build(pods: Pods) -> Cluster:
        built = cluster(*(node(name) for name in pods))
        for name, there in pods.items():
            for other, priority, cpu in there:
                labels = {"name": other}
                built.put_pod(pod(other, cpu=cpu, priority=priority, labels=labels), name)
        return built

    return build


def refusals(new: PodInfo, cluster: Cluster) -> dict[str, Refusal]:
    decision = decide(new, cluster, Evaluations())
    assert decision.node is None
    return dict(decision.refusals)


CASES: list[tuple[str, Pods, str, str, list[str]]] = [
    ("the less important one goes", {"a": [("low", 1, "1"), ("high", 5, "1")]}, "1", "a", ["low"]),
    ("as few as needed", {"a": [("x", 1, "500m"), ("y", 1, "500m"), ("z", 2, "1")]}, "1", "a", ["x", "y"]),
    ("the more important is reprieved", {"a": [("x", 1, "1"), ("y", 2, "1")]}, "1", "a", ["x"]),
    ("where the victim matters least", {"a": [("x", 2, "2")], "b": [("y", 1, "2")]}, "1", "b", ["y"]),
    ("where fewer go", {"a": [("x", 1, "1"), ("y", 1, "1")], "b": [("z", 1, "2")]}, "2", "b", ["z"]),
    (
        "one of 2 before two of 1",
        {"a": [("x", 2, "2")], "b": [("y", 2, "1"), ("z", 1, "1")]},
        "2",
        "a",
        ["x"],
    ),
    ("both go in order of importance", {"a": [("x", 1, "1"), ("y", 2, "1")]}, "2", "a", ["y", "x"]),
]


@pytest.mark.parametrize(("case", "pods", "cpu", "node_", "victims"), CASES, ids=[case[0] for case in CASES])
def test_who_goes(
    case: str,
    pods: Pods,
    cpu: str,
    node_: str,
    victims: list[str],
    full: Callable[[Pods], Cluster],
    pod: Callable[..., PodInfo],
) -> None:
    cluster = full(pods)
    new = pod("new", cpu=cpu, priority=9)
    found, _ = candidates(new, cluster, refusals(new, cluster), [])
    chosen = choose(found)
    assert (chosen.node, [victim.uid for victim in chosen.victims]) == (node_, victims)


@pytest.mark.parametrize(
    ("budgets", "node_", "violations"),
    [
        ([], "a", 0),
        ([budget(0, {"name": "x"})], "b", 0),
        ([budget(1, {"name": "x"})], "a", 0),
        ([budget(0, {"name": "x"}, disrupted=("x",))], "a", 0),
        ([budget(0, {})], "a", 0),
        ([budget(0, {"name": "x"}), budget(0, {"name": "y"})], "a", 1),
    ],
)
def test_budgets_are_kept_where_possible(
    budgets: list[PodDisruptionBudget],
    node_: str,
    violations: int,
    full: Callable[[Pods], Cluster],
    pod: Callable[..., PodInfo],
) -> None:
    """Without a budget x on a goes, being less important than y on b."""
    cluster = full({"a": [("x", 1, "2")], "b": [("y", 2, "2")]})
    new = pod("new", cpu="1", priority=9)
    found, _ = candidates(new, cluster, refusals(new, cluster), budgets)
    chosen = choose(found)
    assert (chosen.node, chosen.violations) == (node_, violations)


def test_a_budget_lets_only_so_many_go(full: Callable[[Pods], Cluster], pod: Callable[..., PodInfo]) -> None:
    """Of two alike pods with one disruption allowed, the second to go violates the budget."""
    cluster = full({"a": [("x", 1, "1"), ("y", 1, "1")]})
    new = pod("new", cpu="2", priority=9)
    both = budget(1, {})
    assert both.spec.selector is not None
    both.spec.selector.match_expressions = [LabelSelectorRequirement(key="name", operator="Exists")]
    found, _ = candidates(new, cluster, refusals(new, cluster), [both])
    assert choose(found).violations == 1


def test_why_nobody_goes(
    full: Callable[[Pods], Cluster], node: Callable[..., Node], pod: Callable[..., PodInfo]
) -> None:
    cluster = full({"equal": [("x", 9, "2")], "kept": [("y", 9, "1500m"), ("z", 1, "500m")]})
    cluster.put_node(node("cordoned", {"unschedulable": True}))
    new = pod("new", cpu="1", priority=9)
    found, refused = candidates(new, cluster, refusals(new, cluster), [])
    assert found == []
    assert {name: refusal.reasons for name, refusal in refused.items()} == {
        "equal": ("No preemption victims found for incoming pod",),
        "kept": ("Insufficient cpu",),
    }


def test_a_pod_that_must_be_apart_may_preempt_whom_it_must_be_apart_from(
    full: Callable[[Pods], Cluster], pod: Callable[..., PodInfo]
) -> None:
    cluster = full({"a": [("x", 1, "100m"), ("y", 1, "100m")]})
    cluster.put_node(cluster.nodes["a"].node)
    cluster.nodes["a"].node.metadata.labels["host"] = "a"
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"name": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    new = pod("new", priority=9, affinity=apart)
    found, _ = candidates(new, cluster, refusals(new, cluster), [])
    assert [victim.uid for victim in choose(found).victims] == ["x"]


LEAVING = {
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
}


@pytest.mark.parametrize(
    ("spec", "victim", "expected"),
    [
        ({}, {}, ""),
        ({"preemptionPolicy": "Never"}, {}, "not eligible due to preemptionPolicy=Never."),
        (
            {},
            {"deleted": True, "status": LEAVING},
            "not eligible due to a terminating pod on the nominated node.",
        ),
        ({}, {"deleted": True}, ""),
        ({}, {"status": LEAVING}, ""),
    ],
)
def test_who_may_preempt(
    spec: dict[str, Any],
    victim: dict[str, Any],
    expected: str,
    node: Callable[..., Node],
    cluster: Callable[..., Cluster],
    pod: Callable[..., PodInfo],
) -> None:
    built = cluster(node("a"), a=[pod("victim", cpu="2", priority=1, **victim)])
    new = pod("new", cpu="2", priority=9, **spec)
    built.nominate(new, "a")
    assert ineligible(new, built, {"a": Refusal("NodeResourcesFit", ("Insufficient cpu",))}) == expected


def test_the_younger_victim_goes(
    node: Callable[..., Node], cluster: Callable[..., Cluster], pod: Callable[..., PodInfo]
) -> None:
    def since(day: int, name: str) -> PodInfo:
        return pod(name, cpu="2", status={"startTime": f"2026-01-0{day}T00:00:00Z"})

    built = cluster(node("a"), node("b"), a=[since(1, "old")], b=[since(2, "young")])
    new = pod("new", cpu="2", priority=9)
    found, _ = candidates(new, built, refusals(new, built), [])
    assert choose(found).node == "b"
