"""R-SYS-8: sequences of requests, answered by podling as by Kubernetes, field by field."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Ask,
    Compared,
    differences,
    shown,
)
from peer.server import Server

NS = "/api/v1/namespaces/{ns}"
MAPS, MAP = f"{NS}/configmaps", f"{NS}/configmaps/m"
OTHER = "11111111-1111-1111-1111-111111111111"
MADE = Ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
POD = Ask("POST", f"{NS}/pods", {"metadata": {"name": "p"}, "spec": {
    "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False,
}})  # fmt: skip
BOUND = {"metadata": {"name": "p"}, "target": {"name": "n"}}
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
BUDGET = Ask("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
SELECTED = Ask(
    "POST", BUDGETS, {"metadata": {"name": "s"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}
)
STRATEGIC, TESTED = {"Content_Type": STRATEGIC_PATCH}, {"Content_Type": JSON_PATCH}
COUNTS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def patched(metadata: dict[str, str]) -> Ask:
    return Ask("PATCH", MAP, {"metadata": metadata}, {"Content_Type": MERGE_PATCH})


def put(metadata: dict[str, str]) -> Ask:
    return Ask("PUT", MAP, {"metadata": {"name": "m", **metadata}, "data": {"a": "c"}})


def applied(metadata: dict[str, str]) -> Ask:
    body = {**APPLIED, "metadata": {"name": "m", **metadata}}
    return Ask("PATCH", f"{MAP}?fieldManager=other&force=true", body, {"Content_Type": APPLY})


def disrupted(answer: int, pods: dict[str, Any]) -> Ask:
    """Of the version in that answer."""
    budget = {
        "metadata": {"name": "b", "resourceVersion": f"${answer}.metadata.resourceVersion"},
        "spec": {"minAvailable": 1},
        "status": {**COUNTS, "disruptedPods": pods},
    }
    return Ask("PUT", f"{BUDGETS}/b/status", budget)


def metadata_of(rest: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Bodies with that name in them, others, and none."""
    return [rest, *({**rest, "metadata": metadata} for metadata in (
        {}, {"name": name}, {"name": "other"}, {"name": ""}, {"generateName": "x"},
        {"namespace": "elsewhere"}, {"name": name, "namespace": "elsewhere"},
        {"name": "other", "namespace": "elsewhere"},
    ))]  # fmt: skip


LIMITS, SETS = f"{NS}/limitranges", "/apis/apps/v1/namespaces/{ns}/deployments"
LIMITED = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
SET = {"metadata": {"name": "d"}, "spec": {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
}}  # fmt: skip
MINE, NEW = {"name": "c"}, {"name": "d", "image": "i"}


def merged(target: str, body: Any) -> Ask:
    return Ask("PATCH", f"{target}?dryRun=All", body, {"Content_Type": STRATEGIC_PATCH})


def merged_limits() -> list[Ask]:
    """In a list that the patch replaces."""
    none = ({"cpu": None}, {"memory": None}, {"a": None}, {"$y": "1"})
    odd = ({"$patch": "replace", "cpu": "2"}, {"$retainKeys": ["cpu"], "cpu": "2"})
    limits = [
        *([{"type": "Container", part: value}] for part in ("min", "max") for value in (*none, *odd)),
        [{"type": None}], [None], [{"type": "Container", "$patch": "delete"}],
        [{"$patch": "replace", "type": "Container"}, {"type": "Pod", "max": {"cpu": "2"}}],
    ]  # fmt: skip
    return [merged(f"{LIMITS}/l", {"spec": {"limits": one}}) for one in limits]


def merged_pods() -> list[Ask]:
    """In items that are there and in new ones, and in what is not there at all."""
    containers: list[dict[str, Any]] = [
        {**item, **part}
        for item in (MINE, NEW)
        for part in (
            {"resources": {"limits": {"cpu": None, "memory": "1"}}}, {"$retainKeys": ["name", "image"]},
            {"resources": {"$patch": "replace", "limits": {"cpu": "1"}}},
            {"resources": {"limits": {"$patch": "delete", "cpu": "1"}}},
            {"env": [{"name": "a", "$patch": "delete"}, {"name": "b", "value": None}]},
            {"ports": [{"containerPort": 1, "hostIP": None, "$x": 1}]},
            {"securityContext": {"seLinuxOptions": {"$patch": "replace", "level": "a"}}},
        )
    ]  # fmt: skip
    pods = [{"containers": [one]} for one in containers]
    pods += [
        {"tolerations": [{"key": "a", "$patch": "delete"}, {"operator": "Exists", "value": None}]},
        {"volumes": [{"name": "v", "emptyDir": {"$patch": "replace", "medium": "Memory"}}, {
            "name": "w", "projected": {"sources": [{"configMap": {"name": "a", "$patch": "delete"}}]},
        }]},
    ]  # fmt: skip
    return [
        *(merged(f"{SETS}/d", {"spec": {"template": {"spec": one}}}) for one in pods),
        *(
            merged(f"{SETS}/d", {"metadata": {"annotations": {"$patch": how, "b": "c"}}})
            for how in ("replace", "delete")
        ),
    ]


def continued(token: str) -> Ask:
    data = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    return Ask("GET", f"{MAPS}?limit=1&continue={data}", what=token)


VERSION = '"v":"meta.k8s.io/v1"'
TOKENS = (
    "{}", "null", "[]", "x", "{", "{} {}", '{"v":"v2","rv":-1,"start":"m"}', '{"v":1}', '{"v":null}',
    '{"rv":"a"}',
    *(f"{{{VERSION}{more}}}" for more in (
        "", ',"rv":0,"start":"m"', ',"rv":-1', ',"rv":-1,"start":""', ',"rv":-1.0,"start":"m"',
        ',"rv":9223372036854775808,"start":"m"', ',"rv":-1,"start":"m","more":1', ',"rv":-7,"start":"n"',
        *(f',"rv":-1,"start":"{key}"' for key in (
            "m", "/m", "//m", "m/", "/", "a/../m", "../m", "..", ".", "./m", "n", "m\\u0000", "n\\u0000",
            "/n\\u0000",
        )),
    )),
    '{"V":"meta.k8s.io/v1","RV":-1,"Start":"m"}', '{"v":"meta.k8s.io/v1","rv":-1,"\u017ftart":"m"}',
)  # fmt: skip


LOGS = (
    "sinceTime=",
    "sinceTime=x",
    "sinceTime=2026",
    "sinceTime=2026-01-01T00:00:00",
    "sinceTime=2026-13-01T00:00:00Z",
    "sinceTime=2026-01-01t00:00:00z",
    "sinceTime=2026-1-01T00:00:00Z",
    "sinceTime=2026-01-01T0:00:00Z",
    "sinceTime=20260-01-01T00:00:00Z",
    "sinceTime=2026-01-01T00:00:00.5%2B01:00",
    "sinceTime=2026-02-30T00:00:00Z",
    "sinceTime=x&sinceTime=2026-01-01T00:00:00Z",
    "sinceTime=2026-01-01T00:00:00Z&sinceTime=x",
    "sinceTime=2026-01-01T00:00:00Z&sinceSeconds=0&tailLines=-1",
    "sinceSeconds=1&sinceTime=",
    "sinceSeconds=0&tailLines=-1&limitBytes=0",
    "sinceTime=x&tailLines=y",
    "sinceSeconds=",
    "tailLines=",
    "limitBytes=",
    "tailLines=99999999999999999999",
    "tailLines=%2B1",
    "limitBytes=1&limitBytes=x",
    "follow=x",
    "previous=2",
    "container=none",
    "container=none&tailLines=-1",
)


SEQUENCES = (
    Compared("a log is asked for in ways that cannot be", [
        POD, *(Ask("GET", f"{NS}/pods/p/log?{options}") for options in LOGS),
    ], apart=True),
    Compared("a number in a query", [
        Ask(method, f"{target}{text}")
        for text in ("%2B1", "%2B0", "-0", "01", "%2B", "-", "--1", "%2B-1", "1e3", "1_0", "0x1", "%D9%A1",
            "9223372036854775807", "9223372036854775808", "-9223372036854775809")
        for method, target in (
            ("GET", f"{MAPS}?limit="), ("GET", f"{MAPS}?timeoutSeconds="),
            ("DELETE", f"{MAP}?dryRun=All&gracePeriodSeconds="),
        )
    ], apart=True),
    Compared("a token to continue with that no server made", [
        MADE, Ask("POST", MAPS, {"metadata": {"name": "n"}}), *(continued(token) for token in TOKENS),
        *(
            Ask(method, f"{MAPS}?continue={text}&dryRun=All")
            for text in ("e30=", "e30", "e", "e30!", "%C3%A4") for method in ("GET", "DELETE")
        ),
    ], apart=True),
    Compared("create, change, change nothing, delete", [
        MADE, put({}), put({}), patched({}), put({"resourceVersion": "$1.metadata.resourceVersion"}),
        Ask("GET", MAP), Ask("DELETE", MAP), Ask("GET", MAP),
    ]),
    Compared("a selector that is replaced", [
        SELECTED,
        *(
            Ask("PATCH", f"{BUDGETS}/s", {"spec": {"selector": {"matchLabels": labels}}}, STRATEGIC)
            for labels in ({"c": "d"}, {"c": None, "e": "f"})
        ),
    ]),
    Compared("a test for null", [
        SELECTED,
        *(
            Ask("PATCH", f"{BUDGETS}/s", [{"op": "test", "path": path, "value": None}], TESTED)
            for path in ("/spec/none", "/spec/none/a", "/spec/selector/none", "/metadata/managedFields/9")
        ),
    ]),
    Compared("a uid that differs", [
        MADE, put({"uid": OTHER}), patched({"uid": OTHER}), applied({"uid": OTHER}),
        put({"uid": "$0.metadata.uid"}), Ask("DELETE", MAP, {"preconditions": {"uid": OTHER}}),
        Ask("DELETE", MAP), applied({"uid": OTHER}),
    ]),
    Compared("a version that differs", [
        MADE, put({"resourceVersion": "1"}), patched({"resourceVersion": "1"}),
        Ask("DELETE", MAP, {"preconditions": {"resourceVersion": "1"}}),
        Ask("POST", MAPS, {"metadata": {"name": "n", "resourceVersion": "1"}}),
    ]),
    Compared("a version that is none", [
        MADE, *(
            Ask(method, f"{path}?{query}resourceVersion={version}")
            for version in ("abc", "-1", "99999999999999999999")
            for method, path, query in (
                ("GET", MAPS, ""), ("GET", MAPS, "limit=1&"), ("GET", MAPS, "watch=1&"), ("GET", MAP, ""),
                ("DELETE", MAPS, "labelSelector=none&"),
            )
        ),
    ]),
    Compared("a body is named, or not, as its path", [
        MADE, *(
            Ask(method, f"{MAPS}/{name}?dryRun=All&fieldManager=peer", body, {"Content_Type": sort})
            for name in ("m", "none")
            for body in metadata_of({"apiVersion": "v1", "kind": "ConfigMap"}, "m")
            for method, sort in (
                ("PUT", "application/json"), ("PATCH", MERGE_PATCH), ("PATCH", STRATEGIC_PATCH),
                ("PATCH", APPLY),
            )
        ),
        Ask("PATCH", f"{MAP}?dryRun=All", {"metadata": {"name": None}}, {"Content_Type": MERGE_PATCH}),
        *(Ask("PUT", f"{NS}?dryRun=All", body) for body in metadata_of({}, "n")),
    ]),
    Compared("what is posted about an object is named, or not, as it", [
        POD, *(
            Ask("POST", f"{NS}/pods/{name}/{action}?dryRun=All", body)
            for name in ("p", "none")
            for action, rest in (("binding", {"target": {"name": "n"}}), ("eviction", {}))
            for body in metadata_of(rest, "p")
        ),
    ]),
    Compared("a token is asked for by the name of its account, or another", [
        Ask("POST", f"{NS}/serviceaccounts/{name}/token", body)
        for name in ("default", "none")
        for rest in ({"spec": {"audiences": ["a"]}}, {"spec": {"expirationSeconds": 1}})
        for body in metadata_of(rest, "default")
    ]),
    Compared("a pod is bound to what is no node", [
        POD, *(
            Ask("POST", f"{NS}/pods/p/binding", {"metadata": {"name": "p"}, **rest})
            for rest in ({}, {"target": {"kind": "x"}}, {"target": {"kind": "Node"}})
        ),
    ]),
    Compared("nulls and directives where a strategic patch finds nothing to merge", [
        Ask("POST", LIMITS, LIMITED), Ask("POST", SETS, SET), *merged_limits(), *merged_pods(),
    ], apart=True),
    Compared("a negative grace period", [
        Ask("POST", f"{NS}/pods", {"metadata": {"name": "p"}, "spec": {
            "terminationGracePeriodSeconds": -5, "containers": [{"name": "c", "image": "i"}],
            "automountServiceAccountToken": False,
        }}),
    ]),
    Compared("a pod that is nowhere is deleted", [
        POD, Ask("DELETE", f"{NS}/pods/p"), Ask("GET", f"{NS}/pods/p"),
        POD, Ask("DELETE", f"{NS}/pods/p?gracePeriodSeconds=30"),
        POD, Ask("DELETE", f"{NS}/pods/p?gracePeriodSeconds=0"),
        POD, Ask("DELETE", f"{NS}/pods/p?dryRun=All"), Ask("GET", f"{NS}/pods/p"),
        Ask("DELETE", f"{NS}/pods"), Ask("GET", f"{NS}/pods"),
    ]),
    Compared("a pod that has run to its end is deleted", [
        POD, Ask("POST", f"{NS}/pods/p/binding", BOUND),
        Ask("PATCH", f"{NS}/pods/p/status", {"status": {"phase": "Succeeded"}},
            {"Content_Type": MERGE_PATCH}),
        Ask("DELETE", f"{NS}/pods/p"),
    ]),
    Compared("a pod is deleted in a hurry", [
        POD, Ask("POST", f"{NS}/pods/p/binding", BOUND),
        Ask("DELETE", f"{NS}/pods/p"), Ask("DELETE", f"{NS}/pods/p?gracePeriodSeconds=5"),
        Ask("DELETE", f"{NS}/pods/p?gracePeriodSeconds=0"),
        POD, Ask("POST", f"{NS}/pods/p/binding", BOUND),
        Ask("DELETE", f"{NS}/pods/p?gracePeriodSeconds=0"),
    ]),
    Compared("a pod was evicted at no time", [
        BUDGET, disrupted(0, {"a": None}), Ask("GET", f"{BUDGETS}/b"),
        disrupted(1, {"a": "2026-01-02T03:04:05Z", "b": None}), disrupted(3, {"a": ""}),
        disrupted(3, {"a": "soon"}), disrupted(3, {"a": 1}),
        disrupted(3, {"a": "2026-01-02T3:04:05Z"}), Ask("GET", f"{BUDGETS}/b"),
        Ask("PATCH", f"{BUDGETS}/b/status", {"status": {"disruptedPods": {"c": None}}},
            {"Content_Type": MERGE_PATCH}),
    ]),
)  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_podling_answers_as_kubernetes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"sequence-{SEQUENCES.index(sequence)}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
