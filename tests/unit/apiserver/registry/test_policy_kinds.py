"""Rules of the kinds that bound, order and guard others: ranges, quotas, budgets, classes, slices, roles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.registry.cluster_role_bindings import ClusterRoleBindings
from podling.apiserver.registry.cluster_roles import ClusterRoles
from podling.apiserver.registry.disruption_budgets import PodDisruptionBudgets
from podling.apiserver.registry.endpoint_slices import EndpointSlices
from podling.apiserver.registry.kind import Kind
from podling.apiserver.registry.limit_ranges import LimitRanges
from podling.apiserver.registry.priority_classes import PriorityClasses
from podling.apiserver.registry.resource_quotas import ResourceQuotas
from podling.apiserver.registry.role_bindings import RoleBindings
from podling.apiserver.registry.roles import Roles
from podling.apiserver.registry.runtime_classes import RuntimeClasses
from podling.model.json import from_data, to_data

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
BORN = "2026-01-01T00:00:00Z"


def made(kind: Kind[Any], data: dict[str, Any], name: str = "x") -> Any:
    """A defaulted object; the status is kept as it is."""
    place = {"namespace": "ns"} if kind.resource.namespaced else {}
    meta = {"name": name, "creationTimestamp": BORN, **place}
    obj = from_data({**data, "metadata": meta}, kind.resource.type)
    kind.default(obj)
    return obj


def faults(kind: Kind[Any], obj: Any) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in kind.validate(obj)]


@pytest.mark.parametrize(
    ("kind", "data", "cells"),
    [
        (LimitRanges(), {}, ["x", BORN]),
        (
            ResourceQuotas(),
            {"status": {"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}},
            ["x", "cpu: 0/1, pods: 1/5", "limits.cpu: 0/2", "60s"],
        ),
        (
            EndpointSlices(),
            {
                "addressType": "IPv4",
                "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(1, 5)],
                "ports": [{"port": 80}, {"name": "any"}],
            },
            ["x", "IPv4", "80,*", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...", "60s"],
        ),
        (EndpointSlices(), {"addressType": "IPv6"}, ["x", "IPv6", "<unset>", "<unset>", "60s"]),
        (PriorityClasses(), {"value": 7}, ["x", 7, False, "60s", "PreemptLowerPriority"]),
        (RuntimeClasses(), {"handler": "kata"}, ["x", "kata", "60s"]),
        (
            PodDisruptionBudgets(),
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
            ["x", "50%", "N/A", 2, "60s"],
        ),
        (Roles(), {}, ["x", BORN]),
        (
            RoleBindings(),
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "ann"},
                    {"kind": "User", "name": "bob"},
                    {"kind": "ServiceAccount", "name": "a", "namespace": "n"},
                ],
            },
            ["x", "Role/r", "60s", "ann, bob", "", "n/a"],
        ),
    ],
)
def test_rows(kind: Kind[Any], data: dict[str, Any], cells: list[Any]) -> None:
    assert kind.row(made(kind, data), NOW) == cells


def test_defaults_of_a_limit_range_follow_from_its_bounds() -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}, "default": {"memory": "4Mi"}}
    limits = to_data(made(LimitRanges(), {"spec": {"limits": [item]}}))["spec"]["limits"][0]
    assert limits["default"] == {"cpu": "2", "memory": "4Mi"}
    assert limits["defaultRequest"] == {"cpu": "2", "memory": "4Mi"}


RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (
            LimitRanges(),
            {
                "spec": {
                    "limits": [
                        {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"}}
                    ]
                }
            },
            [
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
                'spec.limits[0].default[cpu]: Invalid value: "2": '
                "min value 2 is greater than default value 1",
            ],
        ),
        (
            LimitRanges(),
            {"spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}}] * 2}},
            [
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1',
                'spec.limits[1].type: Duplicate value: "Container"',
                'spec.limits[1].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1',
            ],
        ),
        (
            ResourceQuotas(),
            {"spec": {"hard": {"pods": "1500m"}, "scopes": ["BestEffort", "NotBestEffort"]}},
            [
                'spec.hard[pods]: Invalid value: "1500m": must be an integer',
                'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
            ],
        ),
        (
            ResourceQuotas(),
            {"spec": {"hard": {"secrets": "1"}, "scopes": ["Terminating"]}},
            ['spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource'],
        ),
        (
            EndpointSlices(),
            {"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}, {"addresses": []}]},
            [
                'endpoints[0].addresses[0]: Invalid value: "127.0.0.1": '
                "may not be in the loopback range (127.0.0.0/8, ::1/128)",
                "endpoints[1].addresses: Required value: must contain at least 1 address",
            ],
        ),
        (
            EndpointSlices(),
            {"addressType": "IPv4", "ports": [{}, {}]},
            ['ports[1].name: Duplicate value: ""'],
        ),
        (
            PriorityClasses(),
            {"value": 2_000_000_000},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        (RuntimeClasses(), {}, ["handler: Required value"]),
        (
            PodDisruptionBudgets(),
            {"spec": {"minAvailable": 1, "maxUnavailable": "101%"}},
            [
                'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"101%"}: '
                "minAvailable and maxUnavailable cannot be both set",
                'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
            ],
        ),
        (
            Roles(),
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}, {"verbs": []}]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
                "namespaced rules cannot apply to non-resource URLs",
                "rules[1].verbs: Required value: verbs must contain at least one value",
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
            ],
        ),
        (ClusterRoles(), {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}, RULE]}, []),
        (
            ClusterRoleBindings(),
            {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "a"}]},
            [
                'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
                "subjects[0].namespace: Required value",
            ],
        ),
    ],
)
def test_faults(kind: Kind[Any], data: dict[str, Any], expected: list[str]) -> None:
    assert faults(kind, made(kind, data)) == expected


def test_names_of_system_classes_are_the_systems() -> None:
    kind = PriorityClasses()
    assert faults(kind, made(kind, {"value": 2_000_000_000}, "system-cluster-critical")) == []
    assert "system-x is not a known system priority class" in faults(kind, made(kind, {}, "system-x"))[0]


@pytest.mark.parametrize(
    ("kind", "old", "new", "field"),
    [
        (PriorityClasses(), {"value": 1}, {"value": 2}, "value"),
        (PriorityClasses(), {}, {"preemptionPolicy": "Never"}, "preemptionPolicy"),
        (RuntimeClasses(), {"handler": "a"}, {"handler": "b"}, "handler"),
        (EndpointSlices(), {"addressType": "IPv4"}, {"addressType": "IPv6"}, "addressType"),
        (ResourceQuotas(), {}, {"spec": {"scopes": ["Terminating"]}}, "spec.scopes"),
        (RoleBindings(), {"roleRef": {"name": "a"}}, {"roleRef": {"name": "b"}}, "roleRef"),
    ],
)
def test_what_stays_as_it_was(kind: Kind[Any], old: Any, new: Any, field: str) -> None:
    causes = kind.validate_update(made(kind, new), made(kind, old))
    assert [cause.field for cause in causes] == [field]
