"""Which nodes a pod may run on, one case a line (R-SYS-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.scheduler.filter import Refusal, refuse
from podling.scheduler.info import NodeInfo, PodInfo


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    rule = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def reasons(refusal: Refusal | None) -> list[str]:
    return list(refusal.reasons) if refusal else []


def by_name(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


AFFINITY = ["node(s) didn't match Pod's node affinity/selector"]
TAINTED = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
SOFT = {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]}
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}

gpu = {"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}

RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
RESTARTING = {"containers": [{"name": "c", "restartPolicyRules": [RULE]}]}
RESTART_ALL = "RestartAllContainersOnContainerExits"

CASES: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("nothing asked", {}, {}, []),
    ("cordoned", {}, {"spec": {"unschedulable": True}}, ["node(s) were unschedulable"]),
    ("cordoned, tolerated", {"tolerations": [CORDON]}, {"spec": {"unschedulable": True}}, []),
    ("tainted", {}, {"spec": TAINTED}, ["node(s) had untolerated taint(s)"]),
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
    ("the node it names", required(by_name("n1")), {}, []),
    ("another node's", required(by_name("n2")), {}, ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]),
    ("a name among terms", required(by_name("n2"), expression("zone", "Exists")), {"zone": ""}, []),
    ("given a node", {"nodeName": "n2"}, {}, ["node(s) didn't match the requested node name"]),
    ("an extended resource", {"containers": [gpu]}, {}, ["Insufficient example.com/gpu"]),
    ("overhead", {"cpu": "2", "overhead": {"cpu": "1m"}}, {}, ["Insufficient cpu"]),
    ("enough cpu", {"cpu": "2"}, {}, []),
    ("too much cpu", {"cpu": "2001m"}, {}, ["Insufficient cpu"]),
    ("new features the node has", RESTARTING, {"declares": ["Other", RESTART_ALL]}, []),
    (
        "new features the node has not",
        RESTARTING,
        {},
        [f"node declared features check failed - unsatisfied requirements: {RESTART_ALL}"],
    ),
    (
        "claims of devices",
        {"resourceClaims": [{"name": "d", "resourceClaimName": "c"}]},
        {},
        ["cannot allocate all claims"],
    ),
    ("too much of both", {"cpu": "3", "memory": "5Gi"}, {}, ["Insufficient cpu", "Insufficient memory"]),
]


@pytest.mark.parametrize(("case", "asks", "has", "expected"), CASES, ids=[case[0] for case in CASES])
def test_one_node(
    case: str,
    asks: dict[str, Any],
    has: dict[str, Any],
    expected: list[str],
    pod: Callable[..., PodInfo],
    node_info: Callable[..., NodeInfo],
) -> None:
    assert reasons(refuse(pod(**asks), node_info(**has))) == expected


def test_the_largest_init_container_counts(
    pod: Callable[..., PodInfo], node_info: Callable[..., NodeInfo]
) -> None:
    """R-INIT-9: the scheduler uses effective resources."""
    init = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
    assert reasons(refuse(pod(cpu="1", initContainers=init), node_info())) == ["Insufficient cpu"]


def test_what_runs_there_takes_room(pod: Callable[..., PodInfo], node_info: Callable[..., NodeInfo]) -> None:
    info = node_info()
    info.add(pod("one", cpu="1500m"))
    assert reasons(refuse(pod("two", cpu="600m"), info)) == ["Insufficient cpu"]
    info.remove("one")
    assert reasons(refuse(pod("two", cpu="600m"), info)) == []


def test_a_node_takes_only_so_many_pods(
    pod: Callable[..., PodInfo], node_info: Callable[..., NodeInfo]
) -> None:
    info = node_info()
    for name in ("one", "two", "three"):
        info.add(pod(name))
    assert reasons(refuse(pod("four"), info)) == ["Too many pods"]


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
    pod: Callable[..., PodInfo],
    node_info: Callable[..., NodeInfo],
) -> None:
    def with_port(name: str, port: dict[str, Any]) -> PodInfo:
        return pod(name, containers=[{"name": "c", "ports": [{"containerPort": 80, **port}]}])

    info = node_info()
    info.add(with_port("one", first))
    expected = [] if free else ["node(s) didn't have free ports for the requested pod ports"]
    assert reasons(refuse(with_port("two", second), info)) == expected


@pytest.mark.parametrize(
    ("asks", "has", "final"),
    [
        ({"cpu": "2"}, {}, False),
        ({"cpu": "3"}, {}, True),
        ({"cpu": "1"}, {"spec": TAINTED}, True),
        ({"cpu": "1"}, {"spec": {"unschedulable": True}}, True),
        ({"cpu": "1", "nodeSelector": {"disk": "ssd"}}, {}, True),
    ],
)
def test_preemption_helps_only_against_pods(
    asks: dict[str, Any],
    has: dict[str, Any],
    final: bool,
    pod: Callable[..., PodInfo],
    node_info: Callable[..., NodeInfo],
) -> None:
    info = node_info(**has)
    info.add(pod("there", cpu="1"))
    refusal = refuse(pod(**asks), info)
    assert refusal is not None
    assert refusal.final is final


def test_pods_that_need_different_features_are_not_answered_alike(pod: Callable[..., PodInfo]) -> None:
    assert pod(**RESTARTING).shape() != pod().shape()
