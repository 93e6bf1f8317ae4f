"""R-SYS-1: `componentstatuses` and `bindings`, which are answered and not stored, answer as Kubernetes'."""

from __future__ import annotations

from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server

PARTS = "/api/v1/componentstatuses"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
AUTHZ = "/apis/authorization.k8s.io/v1"
ONE = f"{PARTS}?fieldSelector=metadata.name%3Dscheduler"
"""Of the whole list either server has an order of its own."""
PODS, BINDINGS = "/api/v1/namespaces/{ns}/pods", "/api/v1/namespaces/{ns}/bindings"
TARGET = {"target": {"kind": "Node", "name": "n"}}


def pod(name: str) -> Ask:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return Ask("POST", PODS, body)


def binding(meta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": meta, **TARGET, **more}


def every_way(target: str) -> list[Ask]:
    return [Ask(method, target, {}) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")]


SEQUENCES = [
    Compared(
        "parts",
        [
            *[Ask("GET", f"{PARTS}/{name}") for name in ("etcd-0", "scheduler", "controller-manager", "no")],
            Ask("GET", ONE),
            Ask("GET", ONE, headers=TABLE),
            Ask("GET", ONE, headers=METADATA_LIST),
            Ask("GET", f"{PARTS}/etcd-0", headers=TABLE),
            Ask("GET", f"{PARTS}/etcd-0?includeObject=Object", headers=TABLE),
            Ask("GET", f"{PARTS}/etcd-0", headers=METADATA),
            Ask("GET", f"{PARTS}?labelSelector=a%3Db"),
            Ask("GET", f"{PARTS}?labelSelector=(("),
            Ask("GET", f"{PARTS}?fieldSelector=spec.x%3D1"),
            Ask("GET", f"{PARTS}/etcd-0?resourceVersion=zz"),
            Ask("GET", f"{ONE}&resourceVersion=zz"),
            Ask("GET", f"{ONE}&limit=1&continue=zz"),
            Ask("GET", f"{PARTS}?watch=true"),
            Ask("GET", "/api/v1/watch/componentstatuses"),
            Ask("GET", "/api/v1/watch/componentstatuses/etcd-0"),
            Ask("GET", "/api/v1/namespaces/default/componentstatuses"),
            Ask("GET", f"{PARTS}/etcd-0/status"),
            *every_way(PARTS)[1:],
            *every_way(f"{PARTS}/etcd-0")[1:],
        ],
        apart=True,
    ),
    Compared(
        "bindings",
        [
            pod("p"),
            pod("q"),
            Ask("POST", BINDINGS, TARGET),
            Ask("POST", BINDINGS, binding({"name": ""})),
            Ask("POST", BINDINGS, binding({"generateName": "p"})),
            *[Ask("POST", BINDINGS, binding({"name": name})) for name in ("nope", "a/b", "a%b", ".", "..")],
            Ask("POST", BINDINGS, binding({"name": "p", "namespace": "other"})),
            Ask("POST", BINDINGS, {"metadata": {"name": "p"}}),
            Ask("POST", BINDINGS, {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}}),
            Ask("POST", BINDINGS, binding({"name": "p"}, kind="Pod", apiVersion="v1")),
            Ask("POST", BINDINGS, b"{"),
            Ask("POST", f"{BINDINGS}?dryRun=All", binding({"name": "p"})),
            Ask("POST", f"{BINDINGS}?dryRun=x", binding({"name": "p"})),
            Ask("POST", f"{BINDINGS}?fieldValidation=Strict", binding({"name": "p"}, foo=1)),
            Ask("GET", f"{PODS}/p"),
            Ask("POST", BINDINGS, binding({"name": "p", "uid": "another"}), what="no precondition here"),
            Ask("POST", BINDINGS, binding({"name": "p"})),
            Ask("GET", f"{PODS}/p"),
            Ask("POST", f"{PODS}/q/binding", TARGET, what="without a name"),
            Ask("POST", f"{PODS}/q/binding", binding({"name": "p"})),
            Ask("POST", BINDINGS, binding({"name": "q", "annotations": {"a": "b"}, "labels": {"c": "d"}})),
            Ask("GET", f"{PODS}/q"),
        ],
    ),
    Compared(
        "paths",
        [
            *every_way(BINDINGS)[::2],
            *every_way(f"{BINDINGS}/p"),
            *every_way("/api/v1/bindings"),
            *every_way(f"{AUTHZ}/subjectaccessreviews/x"),
            *every_way(f"{AUTHZ}/localsubjectaccessreviews"),
            Ask("GET", f"{BINDINGS}?watch=1"),
            Ask("GET", "/api/v1/watch/namespaces/{ns}/bindings"),
            Ask("GET", f"{AUTHZ}/watch/subjectaccessreviews"),
            Ask("GET", f"{AUTHZ}/subjectaccessreviews?watch=1"),
        ],
        apart=True,
    ),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda one: one.name)
def test_what_is_not_stored_is_answered_alike(
    sequence: Compared, kubernetes: Server, podling: Server
) -> None:
    found = unnamed(differences(sequence, f"unstored-{sequence.name}", kubernetes, podling))
    assert not found, shown(sequence, found)


def test_all_parts_are_listed(kubernetes: Server, podling: Server) -> None:
    theirs, ours = (
        sorted(one["metadata"]["name"] for one in server.ask("GET", PARTS).body["items"])
        for server in (kubernetes, podling)
    )
    assert ours == theirs
