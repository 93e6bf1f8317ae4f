"""Affinity between pods, one case a line (R-SYS-3). Nodes a1, a2 are in zone a, b1 in b, and bare in none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.model.types.node import Node
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import PodInfo
from podling.scheduler.pod_affinity import affinity_scores, affinity_state

WEB, DB = {"app": "web"}, {"app": "db"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(labels: dict[str, str], key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def wishing(which: str, weight: int, wish: dict[str, Any]) -> dict[str, Any]:
    return {which: {PREFERRED: [{"weight": weight, "podAffinityTerm": wish}]}}


@pytest.fixture
def zones(node: Callable[..., Node], cluster: Callable[..., Cluster]) -> Cluster:
    return cluster(node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("bare"))


Placed = list[tuple[str, dict[str, Any]]]
"""(node, what the pod there is like)"""

WEB_IN_A: Placed = [("a1", {"labels": WEB})]
ANY_NAMESPACE: dict[str, Any] = {"namespaceSelector": {}}
TEAM_A: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "a"}}}

CASES: list[tuple[str, Placed, dict[str, Any], str]] = [
    ("near web: its zone", WEB_IN_A, near(term(WEB)), "a1 a2"),
    ("near db that is nowhere", WEB_IN_A, near(term(DB)), ""),
    ("near its own kind, the first one: anywhere with the key", [], near(term({"new": ""})), "a1 a2 b1"),
    ("near two kinds that no pod is at once", WEB_IN_A, near(term(WEB), term(DB)), ""),
    (
        "one pod must be all of them",
        [("a1", {"labels": {"app": "web", "tier": "x"}})],
        near(term(WEB), term({"tier": "x"})),
        "a1 a2",
    ),
    ("apart from web: not its zone", WEB_IN_A, apart(term(WEB)), "b1 bare"),
    ("apart by another key", WEB_IN_A, apart(term(WEB, key="host")), "a1 a2 b1 bare"),
    ("apart from web in other namespaces", WEB_IN_A, apart(term(WEB, namespaces=["other"])), "a1 a2 b1 bare"),
    (
        "web of all namespaces",
        [("a1", {"labels": WEB, "namespace": "x"})],
        apart(term(WEB, **ANY_NAMESPACE)),
        "b1 bare",
    ),
    (
        "of selected namespaces",
        [("b1", {"labels": WEB, "namespace": "other"})],
        apart(term(WEB, **TEAM_A)),
        "a1 a2 bare",
    ),
    (
        "web there wants to be apart from new",
        [("a1", {"labels": WEB, "affinity": apart(term({"new": ""}))})],
        {},
        "b1 bare",
    ),
    ("or from something else", [("a1", {"labels": WEB, "affinity": apart(term(DB))})], {}, "a1 a2 b1 bare"),
    (
        "matchLabelKeys: apart from its own version",
        [("a1", {"labels": {**WEB, "v": "1"}})],
        apart(term(WEB, matchLabelKeys=["v"])),
        "a1 a2 b1 bare",
    ),
    (
        "mismatchLabelKeys: from all others",
        [("a1", {"labels": {**WEB, "v": "1"}})],
        apart(term(WEB, mismatchLabelKeys=["v"])),
        "b1 bare",
    ),
]


@pytest.mark.parametrize(("case", "there", "affinity", "expected"), CASES, ids=[case[0] for case in CASES])
def test_which_nodes(
    case: str,
    there: Placed,
    affinity: dict[str, Any],
    expected: str,
    zones: Cluster,
    pod: Callable[..., PodInfo],
) -> None:
    zones.namespaces["x"] = {}
    for index, (name, like) in enumerate(there):
        zones.put_pod(pod(f"p{index}", **like), name)
    new = pod("new", labels={"new": "", "v": "2"}, affinity=affinity)
    state = affinity_state(new, zones)
    allowed = [name for name, node in zones.nodes.items() if state is None or state.refuse(node) is None]
    assert " ".join(allowed) == expected


@pytest.mark.parametrize(
    ("there", "affinity", "reason", "final"),
    [
        ({"labels": WEB}, near(term(DB)), "node(s) didn't match pod affinity rules", True),
        ({"labels": WEB}, apart(term(WEB)), "node(s) didn't match pod anti-affinity rules", False),
        (
            {"affinity": apart(term({"new": ""}))},
            {},
            "node(s) didn't satisfy existing pods anti-affinity rules",
            False,
        ),
    ],
)
def test_what_it_says(
    there: dict[str, Any],
    affinity: dict[str, Any],
    reason: str,
    final: bool,
    zones: Cluster,
    pod: Callable[..., PodInfo],
) -> None:
    zones.put_pod(pod("p", **there), "a1")
    state = affinity_state(pod("new", labels={"new": ""}, affinity=affinity), zones)
    assert state is not None
    refusal = state.refuse(zones.nodes["a2"])
    assert refusal is not None
    assert (refusal.reasons, refusal.final) == ((reason,), final)


def test_taking_a_pod_away_in_thought(zones: Cluster, pod: Callable[..., PodInfo]) -> None:
    theirs = pod("p", labels=WEB, affinity=apart(term({"new": ""})))
    zones.put_pod(theirs, "a1")
    state = affinity_state(pod("new", labels={"new": ""}, affinity=apart(term(WEB))), zones)
    assert state is not None
    tried = state.clone()
    tried.moved(theirs, zones.nodes["a1"], -1)
    assert tried.refuse(zones.nodes["a1"]) is None
    assert state.refuse(zones.nodes["a1"]) is not None


@pytest.mark.parametrize(
    ("there", "affinity", "expected"),
    [
        ({"labels": WEB}, wishing("podAffinity", 10, term(WEB)), [100, 100, 0, 0]),
        ({"labels": WEB}, wishing("podAntiAffinity", 10, term(WEB)), [0, 0, 100, 100]),
        ({"affinity": wishing("podAffinity", 1, term({"new": ""}))}, {}, [100, 100, 0, 0]),
        ({"affinity": wishing("podAntiAffinity", 1, term({"new": ""}))}, {}, [0, 0, 100, 100]),
        ({"affinity": near(term({"new": ""}))}, {}, [100, 100, 0, 0]),
        ({"labels": WEB}, {}, None),
    ],
)
def test_preferences_of_both_sides(
    there: dict[str, Any],
    affinity: dict[str, Any],
    expected: list[int] | None,
    zones: Cluster,
    pod: Callable[..., PodInfo],
) -> None:
    zones.put_pod(pod("p", **there), "a1")
    new = pod("new", labels={"new": ""}, affinity=affinity)
    assert affinity_scores(new, zones, list(zones.nodes.values())) == expected


def test_a_pod_whose_node_is_gone_counts_nowhere(zones: Cluster, pod: Callable[..., PodInfo]) -> None:
    zones.put_pod(pod("p", labels=WEB), "a1")
    zones.drop_node("a1")
    state = affinity_state(pod("new", affinity=apart(term(WEB))), zones)
    assert state is not None
    assert state.refuse(zones.nodes["a2"]) is None
