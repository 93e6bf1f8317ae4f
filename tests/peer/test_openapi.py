"""R-SYS-1: what is published of every type, with which kubectl validates, merges and explains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from peer.openapi_facts import facts_of, level
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


def test_every_operation_is_published_as_kubernetes_has_it(kubernetes: Server, podling: Server) -> None:
    """Paths, parameters, bodies, answers, names, actions and kinds: everything but which words are used."""
    assert _paths(podling).keys() == _paths(kubernetes).keys()
    found = {}
    for group in _paths(podling):
        theirs, ours = (_wordless(level(_document(server, group))) for server in (kubernetes, podling))
        assert ours["components"]["securitySchemes"] == theirs["components"]["securitySchemes"]
        assert ours["info"] == theirs["info"]
        for path in theirs["paths"].keys() | ours["paths"].keys():
            pair = [_sorted(document["paths"].get(path)) for document in (theirs, ours)]
            if pair[0] != pair[1]:
                found[path] = pair
    assert not found, json.dumps(found, indent=1)


def test_every_operation_of_version_2_is_kubernetes_own(kubernetes: Server, podling: Server) -> None:
    """The upstream program's own document of version 2 has lost all but actions and kinds."""
    theirs, ours = (_acted(_said(server, "/openapi/v2")) for server in (kubernetes, podling))
    assert ours == theirs


def _acted(document: Any) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {
        (path, method): tuple(
            operation.get(f"x-kubernetes-{what}") for what in ("action", "group-version-kind")
        )
        for path, item in level(document["paths"]).items()
        for method, operation in item.items()
        if method != "parameters"
    }


def _wordless(value: Any) -> Any:
    if isinstance(value, list):
        return [_wordless(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "its words" if key == "description" and isinstance(said, str) else _wordless(said)
        for key, said in value.items()
    }


def _sorted(item: Any) -> Any:
    """Who takes nothing of his own may leave that out or have an empty list of it."""
    if not isinstance(item, dict):
        return item
    return {key: _sorted(said) for key, said in item.items() if said or key != "parameters"}


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
