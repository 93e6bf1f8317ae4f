"""The list of what podling answers otherwise: it is short, and what is in it is still so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from peer.named_differences import NAMED, UNASKED, names_of
from peer.sequence import APPLY, DECIDED, JSON_PATCH, MERGE_PATCH, Ask, Compared, Found, differences, shown
from peer.server import Server

MOST = 30
NAMESPACES = "/api/v1/namespaces/{ns}"
PODS, MAPS = f"{NAMESPACES}/pods", f"{NAMESPACES}/configmaps"
SETS = "/apis/apps/v1/namespaces/{ns}/daemonsets"
SELECTED: dict[str, Any] = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
}
CONTAINERS = [{"name": "c", "image": "i"}]
POD: dict[str, Any] = {
    "metadata": {"name": "p"},
    "spec": {"automountServiceAccountToken": False, "containers": CONTAINERS},
}
SET = {"metadata": {"name": "d"}, "spec": SELECTED}
CLAIM = {"metadata": {"name": "c", "labels": {"a": "b"}}, "spec": {"devices": {"requests": []}}}
MAP = {"metadata": {"name": "m"}}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KEPT = {
    "metadata": {"name": "bs.named.test"},
    "spec": {
        "group": "named.test",
        "names": {"kind": "B", "plural": "bs"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
OTHER = "11111111-1111-1111-1111-111111111111"
JOBS, CRON_JOBS = (f"/apis/batch/v1/namespaces/{{ns}}/{plural}" for plural in ("jobs", "cronjobs"))
JOB = {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}
MANAGED = {
    "managedFields": [
        {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": 1}
    ]
}
DEBUGGED = {**POD, "status": {"debugContainerStatuses": []}}
VOLUMES = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
VOLUME = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SECRETS = "/api/v1/namespaces/{ns}/secrets"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MERGED = {"Content_Type": MERGE_PATCH}
SCALERS = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
BEHAVIOR = '{"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}]}}'
SCALER = {
    "metadata": {"name": "s", "annotations": {"autoscaling.alpha.kubernetes.io/behavior": BEHAVIOR}},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "A", "name": "b", "apiVersion": "a/v1"}},
}
EXAMPLES: Mapping[str, Sequence[Ask]] = {
    "what is allowed": [Ask("BREW", f"{MAPS}/m")],
    "a bad binding": [Ask("POST", PODS, POD), Ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}})],
    "own words": [Ask("GET", PODS, None, {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})],
    "generation of a template": [
        Ask("POST", SETS, SET),
        Ask("GET", f"{SETS}/d", None, {"Accept": METADATA}),
    ],
    "empty or absent": [
        Ask("POST", "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims?dryRun=All", CLAIM)
    ],
    "a diff of memory": [
        Ask("POST", PODS, POD),
        Ask("PATCH", f"{PODS}/p", {"spec": {"hostNetwork": True}}, MERGED),
    ],
    "the client's fault": [Ask("GET", "/api/v1/watch")],
    "Go's words of a body": [Ask("POST", MAPS, b"{")],
    "the spelling of a number": [
        Ask("PATCH", "/apis/apps/v1/namespaces/{ns}/controllerrevisions/x?fieldManager=m",
            b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"x"},"revision":1,'
            b'"data":{"a":9223372036854775808}}', {"Content_Type": APPLY})
    ],
    "bytes that are no text": [Ask("GET", f"{MAPS}/%ff")],
    "answers in JSON": [Ask("GET", MAPS, None, {"Accept": "text/html"})],
    "of internal types": [
        Ask("POST", JOBS, {"metadata": {"name": "j"}, "spec": JOB}),
        Ask("PATCH", f"{JOBS}/j", {"spec": {"template": {"spec": {"hostNetwork": True}}}}, MERGED),
    ],
    "no storage key": [
        Ask("POST", MAPS, MAP),
        Ask("PUT", f"{MAPS}/m", {"metadata": {"name": "m", "uid": OTHER}}),
    ],
    "not established": [
        Ask("POST", DEFINITIONS, KEPT),
        Ask("GET", f"{DEFINITIONS}?watch=true&timeoutSeconds=2&fieldSelector=metadata.name%3Dbs.named.test"),
        Ask("DELETE", f"{DEFINITIONS}/bs.named.test"),
    ],
    "why a patch does not fit": [
        Ask("POST", MAPS, MAP),
        Ask("PATCH", f"{MAPS}/m", [{"op": "remove", "path": "/nothing"}], {"Content_Type": JSON_PATCH}),
    ],
    "an authority of OpenShift": [
        Ask("POST", f"{PODS}?dryRun=All", {"metadata": {"name": "q"}, "spec": {"containers": CONTAINERS}})
    ],
}  # fmt: skip
"""What is answered otherwise, where a single server tells."""
APART: Mapping[str, Sequence[Ask]] = {
    "own fields": [
        Ask("POST", f"{PODS}?dryRun=All&fieldValidation=Strict", DEBUGGED)
    ],
    "managers that are no managers": [
        Ask("POST", CRON_JOBS, {
            "metadata": {"name": "c"},
            "spec": {"schedule": "0 0 * * *", "jobTemplate": {"metadata": MANAGED, "spec": JOB}},
        })
    ],
    "labels of a binding": [
        Ask("POST", PODS, POD),
        Ask("POST", f"{PODS}/p/binding", {
            "metadata": {"name": "p", "labels": {"a b": "c"}}, "target": {"name": "n"},
        }),
    ],
    "half a behavior": [
        Ask("POST", SCALERS, SCALER),
        Ask("PUT", f"{SCALERS}/s?fieldManager=other", SCALER),
    ],
    "an empty object": [
        Ask("POST", MAPS, {"metadata": {"name": "m", "finalizers": ["orphan"]}}),
        Ask("DELETE", f"{MAPS}/m?dryRun=All&propagationPolicy=Background"),
    ],
    "written meanwhile": [Ask("POST", DEFINITIONS, KEPT), Ask("DELETE", f"{DEFINITIONS}/bs.named.test")],
    "a claim begins as pending": [
        Ask("POST", VOLUMES, {"metadata": {"name": "c"}, "spec": VOLUME}),
        Ask("PATCH", f"{VOLUMES}/c", {}, MERGED),
    ],
}  # fmt: skip
"""What is left out of other questions since it differs."""
ELSEWHERE = {
    "options within a body": "test_webhooks.py",
    "a deletion is asked about once": "test_webhooks.py",
    "a claim begins as pending": "test_webhooks.py",
    "words of a configuration": "test_authentication.py",
    "hardly HTTP": "test_raw_requests.py",
    "many clauses": "test_paths.py",
    "pages of Go programs": "test_paths.py",
    "parts of OpenAPI": "test_paths.py",
}
"""Where examples are that need more than a server."""


def test_the_list_is_short_and_gives_reasons() -> None:
    names = {one.name for one in (*NAMED, *UNASKED)}
    assert len(names) <= MOST
    assert all(one.name and one.reason for one in (*NAMED, *UNASKED))
    assert names == {*EXAMPLES, *APART, *ELSEWHERE}


def test_none_is_about_what_is_refused() -> None:
    answers = ("201 ", "500 resource name may not be empty"), ("422 google.protobuf.Any", "404 ")
    assert not any(names_of(Found(0, DECIDED, *pair)) for one in answers for pair in (one, one[::-1]))
    assert not any(re.fullmatch(one.path, DECIDED) for one in NAMED)


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_named_is_still_so(name: str, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(name, EXAMPLES[name], apart=True)
    namespace = f"named-{list(EXAMPLES).index(name)}"
    found = differences(sequence, namespace, kubernetes, podling)
    assert any(name in names_of(one) for one in found), shown(sequence, found)


@pytest.mark.parametrize("name", APART)
def test_what_is_not_asked_still_differs(name: str, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(name, APART[name])
    assert differences(sequence, f"apart-{list(APART).index(name)}", kubernetes, podling)
