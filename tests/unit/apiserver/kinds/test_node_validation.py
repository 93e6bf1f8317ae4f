"""R-SYS-1: what is wrong with a node, as its kubelet registers it and as it reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.nodes import NO_FEATURE, Nodes, validate_features
from podling.model.codec.json import from_data
from podling.model.types.node import Node

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

NO_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
TAINT = {"key": "a", "effect": "NoSchedule"}


def node(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Node:
    data = {"metadata": {"name": "n"}, "spec": spec or {}, "status": status or {}}
    made = from_data(data, Node)
    Nodes().default(made)
    return made


REFUSED: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (
        {"taints": [{"key": "", "effect": "NoSchedule"}]},
        {},
        [
            'metadata.taints[0].key: Invalid value: "": name part must be non-empty',
            'metadata.taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '
            "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
            "'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ],
    ),
    (
        {"taints": [{**TAINT, "value": "a b"}]},
        {},
        [f'metadata.taints[0].value: Invalid value: "a b": {NO_VALUE}'],
    ),
    ({"taints": [{"key": "a"}]}, {}, ["metadata.taints[0].effect: Required value"]),
    (
        {"taints": [TAINT, {**TAINT, "value": "v"}]},
        {},
        [
            'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"v","Effect":"NoSchedule",'
            '"TimeAdded":null}: taints must '
            "be unique by key and effect pair"
        ],
    ),
    (
        {"podCIDRs": ["10.0.0.0"]},
        {},
        [
            'spec.podCIDRs[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or '
            "2001:db8::/64)"
        ],
    ),
    (
        {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]},
        {},
        [
            'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR '
            "for each IP family"
        ],
    ),
    (
        {"podCIDRs": ["10.0.0.0/24", "10.0.0.0/24"]},
        {},
        [
            'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.0.0/24"]: may specify no more than one CIDR '
            "for each IP family",
        ],
    ),
    (
        {},
        {"capacity": {"pods": "1500m", "cpu": "-1"}},
        [
            'status.capacity.pods: Invalid value: "1500m": must be an integer',
            'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.allocatable.pods: Invalid value: "1500m": must be an integer',
            'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    (
        {},
        {"allocatable": {"a.b/gpu": "500m"}},
        ['status.allocatable.a.b/gpu: Invalid value: "500m": must be an integer'],
    ),
]


@pytest.mark.parametrize(("spec", "status", "faults"), REFUSED)
def test_what_is_refused(spec: dict[str, Any], status: dict[str, Any], faults: list[str]) -> None:
    found = [f"{cause.field}: {cause.message}" for cause in Nodes().validate(node(spec, status))]
    assert found == faults


def test_what_is_accepted() -> None:
    spec = {"podCIDRs": ["10.0.0.0/24", "fd00::/64"], "taints": [TAINT, {**TAINT, "effect": "NoExecute"}]}
    status = {"capacity": {"cpu": "500m", "memory": "1Gi", "pods": "110", "hugepages-2Mi": "0"}}
    assert Nodes().validate(node(spec, status)) == []


@pytest.mark.parametrize(
    ("sent", "first", "all_"),
    [
        ({"podCIDR": "10.0.0.0/24"}, "10.0.0.0/24", ["10.0.0.0/24"]),
        ({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, "10.0.0.0/24", ["10.0.0.0/24", "fd00::/64"]),
        ({"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.0.0/24"]}, "10.0.1.0/24", ["10.0.1.0/24"]),
        ({}, "", []),
    ],
)
def test_the_two_fields_for_subnets_say_the_same(sent: dict[str, Any], first: str, all_: list[str]) -> None:
    made = node(sent)
    assert (made.spec.pod_cidr, made.spec.pod_cidrs) == (first, all_)


def test_subnets_of_before_may_stay() -> None:
    assert Nodes().validate_changed(node({"podCIDR": "10.0.0.1/24"}), node({"podCIDR": "10.0.0.1/24"})) == []
    assert Nodes().validate_changed(node({"podCIDR": "10.0.0.1/24"}), node())


async def test_what_a_kubelet_reports_is_judged(api: Conversation) -> None:
    await api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    twice = [{"type": "InternalIP", "address": "10.0.0.1"}] * 2
    status = {"addresses": twice, "capacity": {"pods": "1500m"}}
    answer = await api.patch("/api/v1/nodes/n/status", {"status": status})
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "status.addresses[1]",
        "status.capacity.pods",
        "status.allocatable.pods",
    ]


@pytest.mark.parametrize(
    ("features", "faults"),
    [
        (["A", "A/b", "Bc"], []),
        (["a"], [f'[0]: Invalid value: "a": invalid feature name "a": {NO_FEATURE}']),
        (["A", "A"], ['[1]: Duplicate value: "A"']),
        (["B", "A"], ['[1]: Invalid value: "A": list must be sorted alphabetically']),
    ],
)
def test_what_a_node_declares_is_in_order(features: list[str], faults: list[str]) -> None:
    assert [f"{cause.field}: {cause.message}" for cause in validate_features(features, "")] == faults
