"""R-SYS-8: options and bodies that hardly anybody sends, answered by podling as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False},
}
MADE = [
    Ask("POST", MAPS, {"metadata": {"name": name, "labels": {"l": name}, "finalizers": ["x.y/z"]}})
    for name in "abc"
]
OF_A_DELETION = (
    "propagationPolicy=No", "propagationPolicy=", "propagationPolicy=Orphan&dryRun=All", "dryRun=No",
    "gracePeriodSeconds=-1&dryRun=All", "gracePeriodSeconds=x", "gracePeriodSeconds=99999999999999999999",
    "orphanDependents=true&dryRun=All", "orphanDependents=true&propagationPolicy=Orphan", "continue=x",
    "limit=1&dryRun=All", "limit=-1&dryRun=All", "limit=99999999999&dryRun=All", "timeoutSeconds=x",
    "resourceVersion=1&resourceVersionMatch=Exact&dryRun=All", "sendInitialEvents=true&dryRun=All",
    "allowWatchBookmarks=true&dryRun=All", "watch=true&dryRun=All",
    "fieldSelector=metadata.name%3Da&dryRun=All",
    "labelSelector=l+in+(a,b)&dryRun=All", "pretty=x&dryRun=All",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true",
    "ignoreStoreReadErrorWithClusterBreakingPotential=x",
)  # fmt: skip
DELETIONS: tuple[Any, ...] = (
    {}, [], b"null", b"x", b'""', b'{"dryRun":["All"]} x', {"kind": "DeleteOptions", "apiVersion": "v1"},
    {"kind": "DeleteOptions", "apiVersion": "v2"}, {"kind": "Pod", "apiVersion": "v1"},
    {"kind": "DeleteOptions"},
    {"kind": "DeleteOptions", "apiVersion": "apps/v1"}, {"propagationPolicy": "No"},
    {"propagationPolicy": "Orphan", "orphanDependents": True}, {"gracePeriodSeconds": -3},
    {"gracePeriodSeconds": "x"}, {"preconditions": {"uid": "x"}}, {"preconditions": {"resourceVersion": "1"}},
    {"dryRun": ["No"]}, {"dryRun": ["All", "All"]}, {"dryRun": "All"}, {"nope": 1},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
)  # fmt: skip
SORTS = (
    "text/plain", "application/yaml", "application/x-www-form-urlencoded", "application/cbor", "",
    "application/vnd.kubernetes.protobuf", "application/json; charset=utf-8", "application/json;",
    "application/merge-patch+json",
)  # fmt: skip
OF_PODS: dict[str, tuple[str, ...]] = {
    "status": ("GET", "PUT", "PATCH", "POST", "DELETE"),
    "ephemeralcontainers": ("GET", "PUT", "PATCH", "POST"),
    "resize": ("GET", "PUT", "PATCH", "POST"),
    "binding": ("GET", "POST", "PUT"),
    "eviction": ("GET", "POST", "PUT"),
    "log": ("GET", "POST"),
    "nope": ("GET", "POST"),
}
WRONG: tuple[Any, ...] = (
    {}, [], b"", b"x", {"metadata": 1}, {"metadata": {"name": "q"}},
    {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}},
    {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "p"}},
    {"metadata": {"name": "p", "namespace": "other"}},
)  # fmt: skip
OF_WRITES = (
    "dryRun=All", "fieldValidation=Strict&dryRun=All", "fieldManager=%C3%A4%00&dryRun=All", "dryRun=No",
)  # fmt: skip

TRUTHS = ("y", "Y", "n", "N", "yes", "YES", "yEs", "on", "Off", "no", "~", "null", "true", "TRUE")
YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\ndata: "


SEQUENCES = (
    Compared("truths", [
        Ask(method, f"{target}?dryRun=All&fieldManager=q", f"{YAML}{data}\n".encode(), {"Content_Type": sort})
        for word in TRUTHS
        for data in (f"{{a: {word}}}", f"{{{word}: b}}")
        for method, target, sort in (
            ("POST", MAPS, "application/yaml"), ("PATCH", f"{MAPS}/z", "application/apply-patch+yaml"),
        )
    ], apart=True),
    Compared("deletions", [
        *MADE,
        *(Ask("DELETE", f"{MAPS}?{options}") for options in OF_A_DELETION),
        *(
            Ask("DELETE", f"{target}?dryRun=All", body)
            for body in DELETIONS for target in (MAPS, f"{MAPS}/a")
        ),
        *(
            Ask("DELETE", f"{MAPS}?dryRun=All", {"gracePeriodSeconds": 1}, {"Content_Type": sort})
            for sort in SORTS
        ),
    ], apart=True),
    Compared("subresources", [
        Ask("POST", PODS, POD),
        *(
            Ask(method, f"{PODS}/p/{part}?{options}", body,
                {"Content_Type": "application/merge-patch+json"} if method == "PATCH" else {})
            for part, methods in OF_PODS.items()
            for method in methods
            for body in ((None,) if method in ("GET", "DELETE") else WRONG)
            for options in (OF_WRITES[:1] if method == "GET" else OF_WRITES)
        ),
    ], apart=True),
)  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_what_is_odd_is_answered_alike(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"odd-{sequence.name}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
