"""Rules of the kinds that bound, order and guard others: ranges, quotas, budgets, classes, slices, roles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.kind import Kind, Part
from podling.apiserver.kinds.nodes import RuntimeClasses
from podling.apiserver.kinds.policy import PodDisruptionBudgets, PriorityClasses
from podling.apiserver.kinds.quotas import LimitRanges, ResourceQuotas
from podling.apiserver.kinds.rbac import ClusterRoleBindings, ClusterRoles, RoleBindings, Roles
from podling.apiserver.kinds.services import EndpointSlices
from podling.model.codec.json import from_data, to_data
from podling.model.errors import Cause
from podling.model.types.policy import PodDisruptionBudget

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

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
            ["x", "IPv4", "80,any", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...", "60s"],
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


def quota_of(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"scopeSelector": {"matchExpressions": list(requirements)}}}


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
            RuntimeClasses(),
            {"handler": "h", "overhead": {"podFixed": {"hugepages-2Mi": "1Mi"}}},
            [
                'overhead.limits[hugepages-2Mi]: Invalid value: "1Mi": '
                "1Mi is not positive integer multiple of hugepages-2Mi",
                "overhead: Forbidden: HugePages require cpu or memory",
            ],
        ),
        (
            LimitRanges(),
            {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"odd": "1"}}]}},
            [
                'spec.limits[0].max[odd]: Invalid value: "odd": '
                "must be a standard resource type or fully qualified",
                "spec.limits[0].limits: Required value: "
                "either minimum or maximum storage value is required, but neither was provided",
            ],
        ),
        (
            LimitRanges(),
            {"spec": {"limits": [{"type": "Container", "min": {"storage": "1"}}]}},
            [
                f'spec.limits[0].{where}[storage]: Invalid value: "storage": '
                "must be a standard resource for containers"
                for where in ("min", "defaultRequest")
            ],
        ),
        (
            LimitRanges(),
            {
                "spec": {
                    "limits": [
                        {
                            "type": "Container",
                            "default": {"a.b/gpu": "2"},
                            "defaultRequest": {"a.b/gpu": "1"},
                        }
                    ]
                }
            },
            [
                'spec.limits[0].defaultRequest[a.b/gpu]: Invalid value: "1": '
                "default value 2 must equal to defaultRequest value 1 in a.b/gpu"
            ],
        ),
        (ResourceQuotas(), {"spec": {"hard": {"count/jobs.batch": "1", "requests.a.b/gpu": "1"}}}, []),
        (
            ResourceQuotas(),
            {"spec": {"hard": {"storage": "1", "odd": "1", "count/pods": "500m"}}},
            [
                'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
                'spec.hard[odd]: Invalid value: "odd": must be a standard resource type or fully qualified',
                'spec.hard[odd]: Invalid value: "odd": must be a standard resource for quota',
                'spec.hard[count/pods]: Invalid value: "500m": must be an integer',
            ],
        ),
        (
            ResourceQuotas(),
            {"spec": {"hard": {"count/jobs.batch": "1", "pods": "1"}, "scopes": ["Terminating"]}},
            [],
        ),
        (
            ResourceQuotas(),
            {"spec": {"scopes": ["Odd"]}},
            ['spec.scopes: Invalid value: ["Odd"]: unsupported scope'],
        ),
        (
            ResourceQuotas(),
            quota_of({"scopeName": "Terminating", "operator": "In", "values": ["a"]}),
            [
                'spec.scopeSelector.matchExpressions.operator: Invalid value: "In": '
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            ],
        ),
        (
            ResourceQuotas(),
            quota_of({"scopeName": "PriorityClass", "operator": "In"}),
            [
                "spec.scopeSelector.matchExpressions.values: Required value: "
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
        (
            ResourceQuotas(),
            quota_of({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}),
            [
                'spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: '
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            ],
        ),
        (
            ResourceQuotas(),
            quota_of({"scopeName": "Odd", "operator": "Odd"}),
            [
                'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Odd": unsupported scope',
                'spec.scopeSelector.matchExpressions.operator: Invalid value: "Odd": '
                "not a valid selector operator",
            ],
        ),
        (
            ResourceQuotas(),
            quota_of(
                *({"scopeName": name, "operator": "Exists"} for name in ("BestEffort", "NotBestEffort"))
            ),
            ["spec.scopeSelector.matchExpressions: Invalid value: []: conflicting scopes"],
        ),
        (
            PodDisruptionBudgets(),
            {"spec": {"minAvailable": 1, "maxUnavailable": "101%"}},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"101%",'
                '"UnhealthyPodEvictionPolicy":null}: '
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
            ClusterRoles(),
            {
                "aggregationRule": {
                    "clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]
                }
            },
            [
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: "
                'Invalid value: "X": not a valid selector operator',
                "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
            ],
        ),
        (
            RoleBindings(),
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "a"}, {"kind": "User"}, {"kind": "Group"}],
            },
            [
                "subjects[1].name: Required value",
                "subjects[2].name: Required value",
            ],
        ),
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


def test_a_budget_may_be_named_like_any_object() -> None:
    assert faults(PodDisruptionBudgets(), made(PodDisruptionBudgets(), {}, "My_Budget")) == []


def test_what_a_quota_selects_may_change() -> None:
    kind = ResourceQuotas()
    selecting = made(kind, quota_of({"scopeName": "PriorityClass", "operator": "Exists"}))
    assert kind.validate_update(selecting, made(kind, {})) == []


CONDITION = {
    "type": "a.b/Ready",
    "status": "True",
    "lastTransitionTime": BORN,
    "reason": "AsItIs",
    "message": "",
}
CONDITIONS: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([CONDITION], []),
    ([CONDITION, CONDITION], ['[1].type: Duplicate value: "a.b/Ready"']),
    (
        [{**CONDITION, "status": "Odd"}],
        ['[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"'],
    ),
    (
        [{**CONDITION, "observedGeneration": -1}],
        ["[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero"],
    ),
    ([{**CONDITION, "lastTransitionTime": None}], ["[0].lastTransitionTime: Required value"]),
    ([{**CONDITION, "reason": ""}], ["[0].reason: Required value"]),
    ([{**CONDITION, "reason": "r" * 1025}], ["[0].reason: Too long: may not be more than 1024 bytes"]),
    ([{**CONDITION, "message": "m" * 32769}], ["[0].message: Too long: may not be more than 32768 bytes"]),
]


def status_causes(kind: PodDisruptionBudgets, new: PodDisruptionBudget) -> list[Cause]:
    part = kind.subresources["status"]
    assert isinstance(part, Part)
    causes: list[Cause] = part.validate_update(new, made(kind, {}))
    return causes


@pytest.mark.parametrize(("conditions", "expected"), CONDITIONS)
def test_conditions_of_a_budget(conditions: list[dict[str, Any]], expected: list[str]) -> None:
    kind = PodDisruptionBudgets()
    sent = [{key: value for key, value in one.items() if value is not None} for one in conditions]
    new = made(kind, {"status": {"conditions": sent}})
    causes = status_causes(kind, new)
    assert [f"{c.field}: {c.message}".removeprefix("status.conditions") for c in causes] == expected


def test_a_condition_says_why_in_one_word() -> None:
    kind = PodDisruptionBudgets()
    new = made(kind, {"status": {"conditions": [{**CONDITION, "reason": "as it is"}]}})
    (cause,) = status_causes(kind, new)
    assert cause.field == "status.conditions[0].reason"
    assert "a condition reason must start with alphabetic character" in cause.message


async def test_a_priority_class_is_of_one_generation(api: Conversation) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    made = await api.post(classes, {"metadata": {"name": "p"}, "value": 1})
    assert made.body["metadata"]["generation"] == 1
    described = await api.patch(f"{classes}/p", {"description": "d"})
    assert described.body["metadata"]["generation"] == 1


UNCONDITIONAL = [
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"minAvailable": 1}}),
]


@pytest.mark.parametrize(("path", "body"), UNCONDITIONAL, ids=["runtime class", "budget"])
async def test_some_are_replaced_only_by_who_says_which_version(
    api: Conversation, path: str, body: dict[str, Any]
) -> None:
    made = await api.post(path, {"metadata": {"name": "x"}, **body})
    refused = await api.put(f"{path}/x", {"metadata": {"name": "x"}, **body})
    assert refused.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in refused.message
    assert (await api.put(f"{path}/x", made.body)).status == 200


def test_a_runtime_class_is_warned_of_labels_that_have_new_names() -> None:
    selector = {"nodeSelector": {"beta.kubernetes.io/os": "linux", "a": "b"}}
    obj = made(RuntimeClasses(), {"handler": "h", "scheduling": selector})
    assert RuntimeClasses().warnings(obj) == [
        'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]


def test_amounts_are_rounded_up_to_thousandths() -> None:
    quota = made(ResourceQuotas(), {"spec": {"hard": {"cpu": "1u"}}, "status": {"used": {"cpu": "2u"}}})
    limits = made(LimitRanges(), {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1.0001"}}]}})
    assert to_data(quota.spec)["hard"] == to_data(quota.status)["used"] == {"cpu": "1m"}
    assert to_data(limits.spec)["limits"][0]["max"] == {"cpu": "1001m"}
