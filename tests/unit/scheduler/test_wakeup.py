"""Which change wakes which waiting pod, one case a line (R-SYS-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.queue import (
    Change,
    NamespaceChanged,
    NodeCame,
    NodeChanged,
    NodeWent,
    PodCame,
    PodLeaving,
    PodLeft,
)

FIT, PORTS = "NodeResourcesFit", "NodePorts"
SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"

WEB = {"app": "web"}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": WEB}}
NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
EVENLY = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
]
TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
LARGE = {"cpu": "8", "memory": "4Gi", "pods": "3"}


def port(number: int) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": number}]}]}


@pytest.mark.parametrize(
    ("asks", "spec", "expected"),
    [({"cpu": "1"}, {}, True), ({"cpu": "3"}, {}, False), ({"cpu": "1"}, TAINTED, False)],
)
def test_a_new_node(
    asks: dict[str, Any],
    spec: dict[str, Any],
    expected: bool,
    pod: Callable[..., PodInfo],
    node_info: Callable[..., NodeInfo],
) -> None:
    assert NodeCame(node_info("n", spec)).may_help(pod(**asks), {FIT}) is expected


@pytest.mark.parametrize(
    ("asks", "refused_by", "before", "after", "expected"),
    [
        ({"cpu": "3"}, FIT, {}, {"allocatable": LARGE}, True),
        ({"cpu": "9"}, FIT, {}, {"allocatable": LARGE}, False),
        ({"cpu": "1"}, "TaintToleration", {"spec": TAINTED}, {}, True),
        ({"cpu": "1"}, FIT, {}, {"disk": "ssd"}, False),
        ({"nodeSelector": {"disk": "ssd"}}, "NodeAffinity", {}, {"disk": "ssd"}, True),
        ({"affinity": NEAR}, AFFINITY, {}, {"zone": "a"}, True),
        ({"affinity": NEAR}, AFFINITY, {}, {"allocatable": LARGE}, False),
    ],
)
def test_a_changed_node(
    asks: dict[str, Any],
    refused_by: str,
    before: dict[str, Any],
    after: dict[str, Any],
    expected: bool,
    pod: Callable[..., PodInfo],
    node_info: Callable[..., NodeInfo],
) -> None:
    change = NodeChanged(node_info(**before), node_info(**after))
    assert change.may_help(pod(**asks), {refused_by}) is expected


CASES: list[tuple[Callable[[PodInfo], Change], dict[str, Any], dict[str, Any], str, bool]] = [
    (lambda other: PodLeft(other, {}), {}, {"cpu": "1"}, FIT, True),
    (lambda other: PodLeft(other, {}), port(80), port(80), PORTS, True),
    (lambda other: PodLeft(other, {}), port(81), port(80), PORTS, False),
    (lambda other: PodLeft(other, {}), {"labels": WEB}, {"affinity": APART}, AFFINITY, True),
    (lambda other: PodLeft(other, {}), {}, {"affinity": APART}, AFFINITY, False),
    (lambda other: PodLeft(other, {}), {"affinity": APART}, {"labels": WEB}, AFFINITY, True),
    (lambda other: PodLeft(other, {}), {"labels": WEB}, {"affinity": NEAR}, AFFINITY, False),
    (lambda other: PodLeft(other, {}), {"labels": WEB}, {"topologySpreadConstraints": EVENLY}, SPREAD, True),
    (lambda other: PodLeft(other, {}), {}, {"topologySpreadConstraints": EVENLY}, SPREAD, False),
    (PodLeaving, {"labels": WEB}, {"topologySpreadConstraints": EVENLY}, SPREAD, True),
    (PodLeaving, {"labels": WEB}, {"cpu": "1"}, FIT, False),
    (lambda other: PodCame(other, {}), {"labels": WEB}, {"affinity": NEAR}, AFFINITY, True),
    (lambda other: PodCame(other, {}), {}, {"affinity": NEAR}, AFFINITY, False),
    (lambda other: PodCame(other, {}), {"labels": WEB}, {"topologySpreadConstraints": EVENLY}, SPREAD, True),
    (lambda other: PodCame(other, {}), {"labels": WEB}, {"cpu": "1"}, FIT, False),
    (lambda _: NodeWent(), {}, {"topologySpreadConstraints": EVENLY}, SPREAD, True),
    (lambda _: NodeWent(), {}, {"cpu": "1"}, FIT, False),
    (lambda _: NamespaceChanged(), {}, {"affinity": NEAR}, AFFINITY, True),
    (lambda _: NamespaceChanged(), {}, {"cpu": "1"}, FIT, False),
]


@pytest.mark.parametrize(("change", "other", "waiting", "refused_by", "expected"), CASES)
def test_what_happens_to_other_pods(
    change: Callable[[PodInfo], Change],
    other: dict[str, Any],
    waiting: dict[str, Any],
    refused_by: str,
    expected: bool,
    pod: Callable[..., PodInfo],
) -> None:
    assert change(pod("other", **other)).may_help(pod("waiting", **waiting), {refused_by}) is expected
