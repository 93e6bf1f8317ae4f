"""topologySpreadConstraints, one case a line (R-SYS-3). Nodes a1, a2 are in zone a, b1 in zone b, and bare in
none; `web` pods are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.model.types.node import Node
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import PodInfo
from podling.scheduler.topology_spread import spread_scores, spread_state

WEB = {"app": "web"}
OLD = {"matchLabels": {"v": "1"}}
UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"


def constraint(**fields: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **fields,
    }


@pytest.fixture
def zones(node: Callable[..., Node], cluster: Callable[..., Cluster]) -> Cluster:
    tainted = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    return cluster(
        node("a1", zone="a", disk="ssd"),
        node("a2", zone="a", disk="ssd"),
        node("b1", zone="b", disk="ssd"),
        node("c1", tainted, zone="c"),
        node("bare"),
    )


CASES: list[tuple[str, list[str], dict[str, Any], str]] = [
    ("empty: everywhere", [], constraint(nodeTaintsPolicy="Honor"), "a1 a2 b1 c1"),
    ("one in a: elsewhere", ["a1"], constraint(), "b1 c1"),
    ("skew of 2 allows one more", ["a1"], constraint(maxSkew=2), "a1 a2 b1 c1"),
    ("a tainted node counts: c is the emptiest", ["a1", "b1"], constraint(), "c1"),
    ("unless taints are honoured", ["a1", "b1"], constraint(nodeTaintsPolicy="Honor"), "a1 a2 b1 c1"),
    ("and then the emptiest is b", ["a1"], constraint(nodeTaintsPolicy="Honor"), "b1 c1"),
    ("too few domains: the least is 0", ["a1", "b1", "c1"], constraint(minDomains=4), ""),
    ("enough domains", ["a1", "b1", "c1"], constraint(minDomains=3), "a1 a2 b1 c1"),
    ("matchLabelKeys narrows to the own version", ["a1"], constraint(matchLabelKeys=["v"]), "a1 a2 b1 c1"),
    ("keys the pod has not are left out", ["a1"], constraint(matchLabelKeys=["w"]), "b1 c1"),
    ("a pod it does not select adds nothing", ["a1"], constraint(labelSelector=OLD), "a1 a2 b1 c1"),
]


@pytest.mark.parametrize(("case", "there", "rule", "expected"), CASES, ids=[case[0] for case in CASES])
def test_which_nodes_keep_the_skew(
    case: str,
    there: list[str],
    rule: dict[str, Any],
    expected: str,
    zones: Cluster,
    pod: Callable[..., PodInfo],
) -> None:
    for index, name in enumerate(there):
        zones.put_pod(pod(f"p{index}", labels={**WEB, "v": "1"}), name)
    new = pod("new", labels={**WEB, "v": "2"}, topologySpreadConstraints=[rule])
    assert allowed(new, zones) == expected


def allowed(new: PodInfo, zones: Cluster) -> str:
    state = spread_state(new, zones)
    assert state is not None
    return " ".join(name for name, node in zones.nodes.items() if state.refuse(node) is None)


def test_nodes_the_pod_does_not_select_do_not_count(zones: Cluster, pod: Callable[..., PodInfo]) -> None:
    """nodeAffinityPolicy: Honor is the default; c1 is no ssd node, so b is the emptiest zone."""
    zones.put_pod(pod("p", labels=WEB), "a1")
    zones.put_pod(pod("q", labels=WEB), "b1")
    asks = {"labels": WEB, "nodeSelector": {"disk": "ssd"}}
    assert allowed(pod("new", topologySpreadConstraints=[constraint()], **asks), zones) == "a1 a2 b1 c1"
    ignoring = [constraint(nodeAffinityPolicy="Ignore")]
    assert allowed(pod("new", topologySpreadConstraints=ignoring, **asks), zones) == "c1"


def test_pods_of_other_namespaces_and_those_that_leave_do_not_count(
    zones: Cluster, pod: Callable[..., PodInfo]
) -> None:
    zones.put_pod(pod("p", labels=WEB, namespace="other"), "a1")
    zones.put_pod(pod("q", labels=WEB, deleted=True), "a1")
    new = pod("new", labels=WEB, topologySpreadConstraints=[constraint()])
    assert allowed(new, zones) == "a1 a2 b1 c1"


def test_what_it_says(zones: Cluster, pod: Callable[..., PodInfo]) -> None:
    zones.put_pod(pod("p", labels=WEB), "a1")
    state = spread_state(pod("new", labels=WEB, topologySpreadConstraints=[constraint()]), zones)
    assert state is not None
    uneven, no_label = state.refuse(zones.nodes["a2"]), state.refuse(zones.nodes["bare"])
    assert uneven is not None
    assert no_label is not None
    assert (uneven.reasons, uneven.final) == ((UNEVEN,), False)
    assert (no_label.reasons, no_label.final) == ((NO_LABEL,), True)


def test_taking_a_pod_away_in_thought(zones: Cluster, pod: Callable[..., PodInfo]) -> None:
    there = pod("p", labels=WEB)
    zones.put_pod(there, "a1")
    state = spread_state(pod("new", labels=WEB, topologySpreadConstraints=[constraint()]), zones)
    assert state is not None
    tried = state.clone()
    tried.moved(there, zones.nodes["a1"], -1)
    assert tried.refuse(zones.nodes["a2"]) is None
    assert state.refuse(zones.nodes["a2"]) is not None


def test_when_the_emptiest_domain_empties_the_others_are_too_full(
    zones: Cluster, pod: Callable[..., PodInfo]
) -> None:
    there = {name: pod(f"on-{name}", labels=WEB) for name in ("a1", "b1", "c1")}
    for name, other in there.items():
        zones.put_pod(other, name)
    state = spread_state(pod("new", labels=WEB, topologySpreadConstraints=[constraint()]), zones)
    assert state is not None
    assert state.refuse(zones.nodes["a1"]) is None
    state.moved(there["b1"], zones.nodes["b1"], -1)
    assert state.refuse(zones.nodes["a1"]) is not None


def test_soft_constraints_prefer_the_emptier_domain(zones: Cluster, pod: Callable[..., PodInfo]) -> None:
    zones.put_pod(pod("p", labels=WEB), "a1")
    soft = constraint(whenUnsatisfiable="ScheduleAnyway")
    new = pod("new", labels=WEB, topologySpreadConstraints=[soft])
    assert spread_state(new, zones) is None
    assert spread_scores(new, zones, list(zones.nodes.values())) == [0, 0, 100, 100, 0]
    assert spread_scores(pod("plain"), zones, list(zones.nodes.values())) is None
