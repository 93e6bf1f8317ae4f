"""R-SYS-8: FlowSchemas and PriorityLevelConfigurations are defaulted, validated and changed as by Kubernetes,
and the same ones are there from the start.
"""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

BASE = "/apis/flowcontrol.apiserver.k8s.io/v1"
Values = tuple[dict[str, Any], ...]
SCHEMAS, LEVELS = f"{BASE}/flowschemas", f"{BASE}/prioritylevelconfigurations"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
NOT_THERE = "not-there"
SCHEMA: dict[str, Any] = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "f"},
    "spec": {"priorityLevelConfiguration": {"name": NOT_THERE}},
}
USER = {"kind": "User", "user": {"name": "u"}}
RESOURCES = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
PATHS = {"verbs": ["*"], "nonResourceURLs": ["*"]}
LEVEL: dict[str, Any] = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": "p"},
    "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
}
QUEUING = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
ACCOUNT = {"kind": "ServiceAccount", "serviceAccount": {"name": "a", "namespace": "b"}}

RULES: list[dict[str, Any]] = [
    {},
    {"subjects": []},
    {"subjects": [USER]},
    {"subjects": [USER], "resourceRules": [RESOURCES]},
    {"subjects": [USER], "nonResourceRules": [PATHS]},
    {"resourceRules": [RESOURCES]},
    {"subjects": [USER], "resourceRules": [{}], "nonResourceRules": [{}]},
]
SUBJECTS: list[dict[str, Any]] = [
    {},
    {"kind": "Odd", "user": {"name": "u"}},
    {"kind": "User"},
    {"kind": "Group"},
    {"kind": "ServiceAccount"},
    {"kind": "User", "user": {"name": ""}},
    {"kind": "User", "user": {"name": "*"}},
    {"kind": "Group", "group": {"name": ""}},
    {"kind": "Group", "group": {"name": "g"}},
    ACCOUNT,
    *(
        {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": namespace}}
        for name, namespace in (("", ""), ("A_", "B_"), ("*", "*"), ("*", "a"), ("a", ""))
    ),
    *({**USER, "group": {"name": "b"}, "serviceAccount": {}, "kind": kind} for kind in ("User", "Group")),
    {**USER, "group": {"name": "b"}, **ACCOUNT},
]
ASKED: list[dict[str, Any]] = [
        {"verbs": []}, {"verbs": ["*", "get"]}, {"verbs": ["*", "odd"]}, {"verbs": ["odd", "get"]},
        {"verbs": ["GET"]}, {"verbs": ["get", "get"]}, {"verbs": ["get", "proxy", "watch"]},
        {"apiGroups": []}, {"apiGroups": ["*", "a"]}, {"apiGroups": ["A_"]}, {"apiGroups": [""]},
        {"resources": []}, {"resources": ["*", "pods"]}, {"resources": ["pods/log"]}, {"resources": [""]},
        {"namespaces": []}, {"namespaces": [], "clusterScope": True}, {"namespaces": ["*", "a"]},
        {"namespaces": ["A_", "b", ""]}, {"namespaces": ["*"], "clusterScope": True},
]  # fmt: skip
URLS: list[dict[str, Any]] = [
    {"verbs": []},
    {"verbs": ["odd"]},
    {"nonResourceURLs": []},
    {"nonResourceURLs": ["*", "/"]},
    {"nonResourceURLs": ["a", "", "/a b", "//", "/a//b", "/a*", "/*/a", "/**", "/a/*", "/", "/*"]},
]
OF_SCHEMA: list[tuple[str, Any]] = [
    *(("spec.matchingPrecedence", value) for value in (0, -1, 1, 2, 10000, 10001)),
    *(("spec.priorityLevelConfiguration", value) for value in ({}, {"name": "A_"}, {"name": "a.b"})),
    *(("spec.distinguisherMethod", value) for value in (
        {}, {"type": "Odd"}, {"type": "ByUser"}, {"type": "ByNamespace"}
    )),
    *(("spec.rules", [value]) for value in RULES),
    *(("spec.rules", [{"subjects": [value], "resourceRules": [RESOURCES]}]) for value in SUBJECTS),
    *(("spec.rules", [{"subjects": [USER], "resourceRules": [{**RESOURCES, **value}]}]) for value in ASKED),
    *(("spec.rules", [{"subjects": [USER], "nonResourceRules": [{**PATHS, **value}]}]) for value in URLS),
    ("metadata.name", "A_"),
    ("metadata.name", "exempt"),
    ("metadata.name", "catch-all"),
    ("metadata.generation", 5),
    ("status", {"conditions": [{"type": "A"}]}),
    ("spec.odd", 1),
]  # fmt: skip
OF_LEVEL: list[tuple[str, Any]] = [
    *(("spec", value) for value in (
        {},
        {"type": "Odd"},
        {"type": "Limited"},
        {"type": "Exempt"},
        {"type": "Limited", "limited": {}},
        {"type": "Exempt", "exempt": {}},
        {"type": "Exempt", "exempt": {"nominalConcurrencyShares": -1, "lendablePercent": 101}},
        {"type": "Exempt", "limited": {}},
        {"type": "Limited", "exempt": {}},
        {"type": "Limited", "limited": {}, "exempt": {}},
    )),
    *((f"spec.limited.{name}", value) for name, values in (
        ("nominalConcurrencyShares", (0, -1, 5)),
        ("lendablePercent", (-1, 0, 100, 101)),
        ("borrowingLimitPercent", (-1, 0, 1000)),
    ) for value in values),
    *(("spec.limited.limitResponse", value) for value in (
        {},
        {"type": "Odd"},
        {"type": "Queue"},
        {"type": "Reject", "queuing": {}},
        {"type": "Queue", "queuing": {}},
        *({"type": "Queue", "queuing": {**QUEUING, **more}} for more in (
            {}, {"queues": -1}, {"queues": 10_000_001}, {"queues": 10_000_000, "handSize": 10},
            {"handSize": -1}, {"handSize": 17}, {"queues": 1, "handSize": 2}, {"queueLengthLimit": -1},
            {"queues": 512, "handSize": 8}, {"queues": 1, "handSize": 1}, {"queues": 1024, "handSize": 6},
        )),
    )),
    ("metadata.name", "A_"),
    ("metadata.name", "exempt"),
    ("metadata.name", "catch-all"),
    ("metadata.generation", 5),
    ("status", {"conditions": [{"type": "A"}]}),
]  # fmt: skip
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("metadata.annotations", {"a": "b"}),
    ("status", {"conditions": [{"type": "A"}]}),
    ("spec.odd", 1),
]
SCHEMA_UPDATES: list[tuple[str, Any]] = [
    *UPDATES,
    ("spec.matchingPrecedence", 5),
    ("spec.matchingPrecedence", 1),
    ("spec.distinguisherMethod", {"type": "ByUser"}),
    ("spec.rules", [{"subjects": [USER], "resourceRules": [RESOURCES]}]),
    ("spec.rules", None),
]
LEVEL_UPDATES: list[tuple[str, Any]] = [
    *UPDATES,
    ("spec.limited", {"limitResponse": {"type": "Queue", "queuing": {}}}),
    ("spec.limited", {"nominalConcurrencyShares": 5}),
    ("spec", {"type": "Exempt", "limited": None}),
    ("spec", {"exempt": {}}),
]
CHANGED: list[tuple[str, dict[str, Any]]] = [
    (SCHEMAS, {"matchingPrecedence": 5}),
    (SCHEMAS, {"distinguisherMethod": {"type": "ByNamespace"}}),
    (SCHEMAS, {"priorityLevelConfiguration": {"name": NOT_THERE}}),
    (LEVELS, {"exempt": {"lendablePercent": 4}}),
    (LEVELS, {"limited": {"lendablePercent": 4}}),
    (LEVELS, {"type": "Limited", "exempt": None, "limited": {}}),
]
ALLOWED: list[tuple[str, dict[str, Any]]] = [("exempt", CHANGED[3][1]), ("catch-all", CHANGED[5][1])]
FIXED = [
    Ask("PATCH", f"{target}/{name}?dryRun=All", {"spec": spec}, {"Content_Type": MERGE_PATCH})
    for name in ("exempt", "catch-all")
    for target, spec in CHANGED
    if (name, spec) not in ALLOWED
]
STATUSES: list[dict[str, Any]] = [
    {"conditions": [{"type": "A", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]},
    {"conditions": [{"type": ""}]},
    {"conditions": [{"type": "A"}, {"type": "A"}]},
    {"conditions": [{"type": "A", "status": "Odd"}]},
    {"conditions": None},
]


def seen(target: str, base: dict[str, Any]) -> list[Ask]:
    place = f"{target}/{base['metadata']['name']}"
    statuses = [
        Ask("PATCH", f"{place}/status?dryRun=All", {"status": one}, {"Content_Type": MERGE_PATCH})
        for one in STATUSES
    ]
    return [
        Ask("POST", target, base),
        Ask("GET", f"{target}?fieldSelector=metadata.name%3D{base['metadata']['name']}"),
        Ask("GET", f"{target}?fieldSelector=spec.type%3DLimited"),
        *statuses,
        Ask("PATCH", f"{place}/status?dryRun=All", {"spec": {}, "metadata": {"labels": {"a": "b"}}},
            {"Content_Type": MERGE_PATCH}),
        Ask("PUT", place, base),
        Ask("POST", f"{place}/status", {}),
        Ask("PATCH", f"{place}?fieldManager=a&force=true&dryRun=All", base, {"Content_Type": APPLY}),
        Ask("DELETE", place),
        Ask("DELETE", place),
        Ask("GET", BASE),
    ]  # fmt: skip


def dry(asks: list[Ask]) -> list[Ask]:
    """What is created is not kept: these kinds have no namespace, and levels that come and go are told of."""
    return [Ask(ask.method, f"{ask.target}?dryRun=All", ask.body, ask.headers) for ask in asks]


SEQUENCES = [
    Compared("flow schemas: created", dry(created(SCHEMAS, SCHEMA, OF_SCHEMA))),
    Compared("priority levels: created", dry(created(LEVELS, LEVEL, OF_LEVEL))),
    Compared("priority levels: updated", updated(LEVELS, LEVEL, LEVEL_UPDATES)),
    Compared("flow: mandatory ones", FIXED),
    Compared("priority levels: seen", seen(LEVELS, changed(LEVEL, "metadata.name", "seen"))),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_flowcontrol(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.parametrize("target", [SCHEMAS, LEVELS])
def test_the_same_are_there_from_the_start(target: str, kubernetes: Server, podling: Server) -> None:
    made: list[Any] = []
    for server in (kubernetes, podling):
        items = until_there(server, target)
        made.append([(one["metadata"]["name"], one["metadata"]["annotations"], one["spec"]) for one in items])
    assert made[0] == made[1]


def until_there(server: Server, target: str) -> list[Any]:
    """The items, as soon as the last of them is there: `system-nodes`, `workload-low`."""
    ready = {SCHEMAS: 11, LEVELS: 8}[target]
    watch = server.ask("GET", f"{target}?watch=1&timeoutSeconds=2")
    assert watch.code == 200
    items: list[Any] = server.ask("GET", target).body["items"]
    assert len(items) == ready
    return items
