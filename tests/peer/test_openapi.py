"""R-SYS-1: what is published of every type, with which kubectl validates, merges and explains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from peer.openapi_facts import facts_of
from peer.server import Server

PODLINGS_OWN = frozenset({("core.v1.PodStatus", "debugContainerStatuses"), ("core.v1.Volume", "container")})
"""Fields of earlier designs, which wait behind feature gates (R-DBG-1, R-VOL-1)."""


def test_every_type_is_published_as_kubernetes_has_it(kubernetes: Server, podling: Server) -> None:
    found = {}
    for path in _paths(podling):
        theirs, ours = (facts_of(_document(server, path)) for server in (kubernetes, podling))
        for name in sorted(ours.keys() & theirs.keys()):
            own = [f"{field} " for type_, field in PODLINGS_OWN if type_ == name]
            said = [line for line in ours[name] if not line.startswith(tuple(own))]
            if said != theirs[name]:
                found[name] = _unlike(theirs[name], said)
    assert not found, json.dumps(found, indent=1)


def test_no_type_is_published_that_kubernetes_does_not_know(kubernetes: Server, podling: Server) -> None:
    theirs, ours = (
        {name for path in _paths(podling) for name in facts_of(_document(server, path))}
        for server in (kubernetes, podling)
    )
    assert ours <= theirs


def _paths(server: Server) -> Mapping[str, Any]:
    paths: Mapping[str, Any] = _said(server, "/openapi/v3")["paths"]
    return paths


def _document(server: Server, path: str) -> Any:
    return _said(server, _paths(server)[path]["serverRelativeURL"])


def _said(server: Server, target: str) -> Any:
    body = server.ask("GET", target).body
    # Kubernetes calls its index plain text.
    return json.loads(body) if isinstance(body, str) else body


def _unlike(theirs: list[str], ours: list[str]) -> dict[str, list[str]]:
    return {
        "kubernetes": [line for line in theirs if line not in ours],
        "podling": [line for line in ours if line not in theirs],
    }
