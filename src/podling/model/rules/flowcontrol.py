"""The FlowSchemas and PriorityLevelConfigurations that an API server makes at its first start, as
kube-apiserver does. Those named `exempt` and `catch-all` are mandatory: they are as here for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import convert

from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration

EXEMPT, CATCH_ALL = "exempt", "catch-all"
UPDATED = {"apf.kubernetes.io/autoupdate-spec": "true"}
"""On objects that the server keeps up to date."""
ALL = ["*"]
EVERY_RESOURCE = {
    "verbs": ALL,
    "apiGroups": ALL,
    "resources": ALL,
    "clusterScope": True,
    "namespaces": ALL,
}
LEASES = {"verbs": ALL, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ALL}
NODES = {**EVERY_RESOURCE, "apiGroups": [""], "resources": ["nodes", "nodes/status"]}
EVERYTHING = {
    "resourceRules": [EVERY_RESOURCE],
    "nonResourceRules": [{"verbs": ALL, "nonResourceURLs": ALL}],
}
PROBES = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}
ELECTIONS = {"resourceRules": [{**LEASES, "verbs": ["get", "create", "update"]}]}
OF_NODES = {"resourceRules": [NODES, LEASES]}
ANYBODY = ("Group system:unauthenticated", "Group system:authenticated")
MANAGER, SCHEDULER = "User system:kube-controller-manager", "User system:kube-scheduler"
OF_SYSTEM = "ServiceAccount kube-system/*"

_SCHEMAS: Sequence[tuple[str, str, int, str, Sequence[str], Any]] = (
    ("exempt", EXEMPT, 1, "", ("Group system:masters",), EVERYTHING),
    ("probes", EXEMPT, 2, "", ANYBODY, PROBES),
    ("system-leader-election", "leader-election", 100, "ByUser", (MANAGER, SCHEDULER, OF_SYSTEM), ELECTIONS),
    ("system-node-high", "node-high", 400, "ByUser", ("Group system:nodes",), OF_NODES),
    ("system-nodes", "system", 500, "ByUser", ("Group system:nodes",), EVERYTHING),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", (MANAGER,), EVERYTHING),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", (SCHEDULER,), EVERYTHING),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", (OF_SYSTEM,), EVERYTHING),
    ("service-accounts", "workload-low", 9000, "ByUser", ("Group system:serviceaccounts",), EVERYTHING),
    ("global-default", "global-default", 9900, "ByUser", ANYBODY, EVERYTHING),
    ("catch-all", CATCH_ALL, 10000, "ByUser", ANYBODY, EVERYTHING),
)
"""Name, priority level, precedence, what tells flows apart, subjects, and what they ask for."""
_LEVELS = (
    ("system", 30, 33, 64, 6),
    ("node-high", 40, 25, 64, 6),
    ("leader-election", 10, 0, 16, 4),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
    ("global-default", 20, 50, 128, 6),
)
"""Name, shares, percent of them that may be lent, queues, and size of a hand."""
QUEUE_LENGTH = 50


@cache
def flow_schemas() -> dict[str, FlowSchema]:
    """By name; not to be changed."""
    return {
        name: convert(
            {
                "metadata": {"name": name, "annotations": UPDATED},
                "spec": {
                    "priorityLevelConfiguration": {"name": level},
                    "matchingPrecedence": precedence,
                    "distinguisherMethod": {"type": method} if method else None,
                    "rules": [{"subjects": [_subject(text) for text in subjects], **asked}],
                },
            },
            FlowSchema,
        )
        for name, level, precedence, method, subjects, asked in _SCHEMAS
    }


def _subject(text: str) -> dict[str, Any]:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return {"kind": kind, "serviceAccount": {"namespace": namespace, "name": name}}
    return {"kind": kind, kind.lower(): {"name": name}}


@cache
def priority_levels() -> dict[str, PriorityLevelConfiguration]:
    """By name; not to be changed."""
    rejecting = {
        "nominalConcurrencyShares": 5,
        "limitResponse": {"type": "Reject"},
        "lendablePercent": 0,
    }
    specs: dict[str, Any] = {
        EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
        CATCH_ALL: {"type": "Limited", "limited": rejecting},
    }
    for name, shares, lendable, queues, hand in _LEVELS:
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": QUEUE_LENGTH}
        specs[name] = {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": shares,
                "limitResponse": {"type": "Queue", "queuing": queuing},
                "lendablePercent": lendable,
            },
        }
    return {
        name: convert(
            {"metadata": {"name": name, "annotations": UPDATED}, "spec": spec}, PriorityLevelConfiguration
        )
        for name, spec in specs.items()
    }
