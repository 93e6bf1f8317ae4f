"""Which nodes a pod may run on, one case a line (R-SYS-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.model.node import Taint
from podling.model.pod import Pod
from podling.model.scheduling import Toleration
from podling.scheduler.filter import objections, tolerated
from podling.scheduler.node_info import NodeInfo


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    rule = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


AFFINITY = ["node(s) didn't match Pod's node affinity/selector"]
TAINTED = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
SOFT = {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]}
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}

CASES: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("nothing asked", {}, {}, []),
    ("cordoned", {}, {"spec": {"unschedulable": True}}, ["node(s) were unschedulable"]),
    ("cordoned, tolerated", {"tolerations": [CORDON]}, {"spec": {"unschedulable": True}}, []),
    ("tainted", {}, {"spec": TAINTED}, ["node(s) had untolerated taint {k: v}"]),
    ("tainted, tolerated", {"tolerations": [{"key": "k", "value": "v"}]}, {"spec": TAINTED}, []),
    ("softly tainted", {}, {"spec": SOFT}, []),
    ("selected", {"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd"}, []),
    ("not selected", {"nodeSelector": {"disk": "ssd"}}, {"disk": "hdd"}, AFFINITY),
    ("required In", required(expression("zone", "In", "a", "b")), {"zone": "b"}, []),
    ("required NotIn", required(expression("zone", "NotIn", "b")), {"zone": "b"}, AFFINITY),
    ("required Exists", required(expression("zone", "Exists")), {}, AFFINITY),
    ("required DoesNotExist", required(expression("zone", "DoesNotExist")), {}, []),
    ("required Gt", required(expression("cores", "Gt", "4")), {"cores": "8"}, []),
    ("required Lt", required(expression("cores", "Lt", "4")), {"cores": "8"}, AFFINITY),
    ("required Gt of no number", required(expression("cores", "Gt", "4")), {"cores": "many"}, AFFINITY),
    ("one of two terms", required(expression("a", "Exists"), expression("b", "Exists")), {"b": ""}, []),
    ("an empty term", required({}), {}, AFFINITY),
    ("enough cpu", {"cpu": "2"}, {}, []),
    ("too much cpu", {"cpu": "2001m"}, {}, ["Insufficient cpu"]),
    ("too much of both", {"cpu": "3", "memory": "5Gi"}, {}, ["Insufficient cpu", "Insufficient memory"]),
]


@pytest.mark.parametrize(("case", "asks", "has", "expected"), CASES, ids=[case[0] for case in CASES])
def test_one_node(
    case: str,
    asks: dict[str, Any],
    has: dict[str, Any],
    expected: list[str],
    pod: Callable[..., Pod],
    node: Callable[..., NodeInfo],
) -> None:
    assert objections(pod(**asks), node(**has)) == expected


def test_the_largest_init_container_counts(pod: Callable[..., Pod], node: Callable[..., NodeInfo]) -> None:
    """R-INIT-9: the scheduler uses effective resources."""
    init = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
    assert objections(pod(cpu="1", initContainers=init), node()) == ["Insufficient cpu"]


def test_what_runs_there_takes_room(pod: Callable[..., Pod], node: Callable[..., NodeInfo]) -> None:
    info = node()
    info.add(pod("one", cpu="1500m"))
    assert objections(pod("two", cpu="600m"), info) == ["Insufficient cpu"]
    info.remove(pod("one"))
    assert objections(pod("two", cpu="600m"), info) == []


def test_a_node_takes_only_so_many_pods(pod: Callable[..., Pod], node: Callable[..., NodeInfo]) -> None:
    info = node()
    for name in ("one", "two", "three"):
        info.add(pod(name))
    assert objections(pod("four"), info) == ["Too many pods"]


@pytest.mark.parametrize(
    ("first", "second", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "127.0.0.1"}, {"hostPort": 80, "hostIP": "127.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "127.0.0.2"}, False),
    ],
)
def test_host_ports(
    first: dict[str, Any],
    second: dict[str, Any],
    free: bool,
    pod: Callable[..., Pod],
    node: Callable[..., NodeInfo],
) -> None:
    def with_port(name: str, port: dict[str, Any]) -> Pod:
        return pod(name, containers=[{"name": "c", "ports": [{"containerPort": 80, **port}]}])

    info = node()
    info.add(with_port("one", first))
    expected = [] if free else ["node(s) didn't have free ports for the requested pod ports"]
    assert objections(with_port("two", second), info) == expected


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
