from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.model.types.node import Node, Taint
from podling.model.types.pod import Toleration
from podling.scheduler.info import PodInfo
from podling.scheduler.node_match import avoided, named_nodes, preferred_weight, tolerated


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="k", value="v", effect="NoExecute"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", value="v", effect="NoSchedule"), False),
        (Toleration(value="v"), False),
    ],
)
def test_tolerations(toleration: Toleration, expected: bool) -> None:
    assert tolerated(Taint(key="k", value="v", effect="NoExecute"), [toleration]) is expected


def test_soft_taints_are_counted() -> None:
    taints = [Taint(key=key, effect="PreferNoSchedule") for key in "abc"]
    taints.append(Taint(key="hard", effect="NoSchedule"))
    assert avoided(taints, [Toleration(key="b", operator="Exists")]) == 2


def by_name(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


LABELLED = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([by_name("a")], {"a"}),
        ([by_name("a"), by_name("b")], {"a", "b"}),
        ([{**by_name("a"), **LABELLED}], {"a"}),
        ([by_name("a"), LABELLED], None),
        ([], None),
    ],
)
def test_the_nodes_a_pod_names(
    terms: list[dict[str, Any]], expected: set[str] | None, pod: Callable[..., PodInfo]
) -> None:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert named_nodes(pod(affinity={"nodeAffinity": rule}).pod.spec) == expected


def test_preferences_add_up_and_an_empty_one_is_none(
    pod: Callable[..., PodInfo], node: Callable[..., Node]
) -> None:
    disk = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    rule = [
        {"weight": 10, "preference": disk},
        {"weight": 5, "preference": LABELLED},
        {"weight": 80, "preference": {}},
    ]
    spec = pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rule}}).pod.spec
    weights = [preferred_weight(spec, node(**labels)) for labels in ({}, {"disk": "ssd"}, {"zone": "a"})]
    assert weights == [0, 10, 5]
    assert preferred_weight(spec, node(disk="ssd", zone="a")) == 15
