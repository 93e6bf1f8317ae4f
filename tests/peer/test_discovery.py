"""R-SYS-1: groups, versions and resources are told in Kubernetes' order and words, in both forms."""

from __future__ import annotations

from typing import Any

import pytest

from peer.server import Server

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def told(server: Server, path: str, accept: str = "application/json") -> Any:
    return server.ask("GET", path, Accept=accept).body


def test_groups_are_in_the_same_order(kubernetes: Server, podling: Server) -> None:
    theirs, ours = (told(server, "/apis")["groups"] for server in (kubernetes, podling))
    assert ours == theirs


def test_resources_are_told_alike(kubernetes: Server, podling: Server) -> None:
    for group in told(podling, "/apis")["groups"]:
        path = f"/apis/{group['name']}"
        assert told(podling, path) == told(kubernetes, path)
        for version in group["versions"]:
            known(kubernetes, podling, f"/apis/{version['groupVersion']}")
    known(kubernetes, podling, "/api/v1")


def known(kubernetes: Server, podling: Server, path: str) -> None:
    theirs, ours = (_resources(server, path) for server in (kubernetes, podling))
    assert ours == theirs


def _resources(server: Server, path: str) -> Any:
    """How a resource is stored is each one's own."""
    return [
        {key: value for key, value in entry.items() if key != "storageVersionHash"}
        for entry in told(server, path)["resources"]
    ]


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_the_one_document_tells_the_same(path: str, kubernetes: Server, podling: Server) -> None:
    theirs, ours = (told(server, path, AGGREGATED) for server in (kubernetes, podling))
    assert ours == theirs
