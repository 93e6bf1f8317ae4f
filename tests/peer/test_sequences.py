"""R-SYS-8: sequences of requests, answered by podling as by Kubernetes, field by field."""

from __future__ import annotations

import pytest

from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

NS = "/api/v1/namespaces/{ns}"
MAPS, MAP = f"{NS}/configmaps", f"{NS}/configmaps/m"
OTHER = "11111111-1111-1111-1111-111111111111"
MADE = Ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}


def patched(metadata: dict[str, str]) -> Ask:
    return Ask("PATCH", MAP, {"metadata": metadata}, {"Content_Type": MERGE_PATCH})


def put(metadata: dict[str, str]) -> Ask:
    return Ask("PUT", MAP, {"metadata": {"name": "m", **metadata}, "data": {"a": "c"}})


def applied(metadata: dict[str, str]) -> Ask:
    body = {**APPLIED, "metadata": {"name": "m", **metadata}}
    return Ask("PATCH", f"{MAP}?fieldManager=other&force=true", body, {"Content_Type": APPLY})


SEQUENCES = (
    Compared("create, change, change nothing, delete", [
        MADE, put({}), put({}), patched({}), put({"resourceVersion": "$1.metadata.resourceVersion"}),
        Ask("GET", MAP), Ask("DELETE", MAP), Ask("GET", MAP),
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
    Compared("a negative grace period", [
        Ask("POST", f"{NS}/pods", {"metadata": {"name": "p"}, "spec": {
            "terminationGracePeriodSeconds": -5, "containers": [{"name": "c", "image": "i"}],
            "automountServiceAccountToken": False,
        }}),
    ]),
)  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_podling_answers_as_kubernetes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"sequence-{SEQUENCES.index(sequence)}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
