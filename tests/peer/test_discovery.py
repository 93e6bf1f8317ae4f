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
    names = {group["name"] for group in ours}
    assert ours == [group for group in theirs if group["name"] in names]


def test_resources_are_told_alike(kubernetes: Server, podling: Server) -> None:
    for group in told(podling, "/apis")["groups"]:
        path = f"/apis/{group['name']}"
        assert told(podling, path) == told(kubernetes, path)
        for version in group["versions"]:
            known(kubernetes, podling, f"/apis/{version['groupVersion']}")
    known(kubernetes, podling, "/api/v1")


def known(kubernetes: Server, podling: Server, path: str) -> None:
    """Every resource that podling has is told by Kubernetes alike. How it is stored is each one's own."""
    theirs, ours = (
        {
            entry["name"]: {key: value for key, value in entry.items() if key != "storageVersionHash"}
            for entry in told(server, path)["resources"]
        }
        for server in (kubernetes, podling)
    )
    assert ours == {name: theirs.get(name) for name in ours}


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_the_one_document_tells_the_same(path: str, kubernetes: Server, podling: Server) -> None:
    theirs, ours = (told(server, path, AGGREGATED) for server in (kubernetes, podling))
    groups = {entry["metadata"].get("name", ""): entry for entry in theirs["items"]}
    for entry in ours["items"]:
        other = groups[entry["metadata"].get("name", "")]
        assert [one["version"] for one in entry["versions"]] == [one["version"] for one in other["versions"]]
        for one, version in zip(entry["versions"], other["versions"], strict=True):
            resources = {resource["resource"]: resource for resource in version["resources"]}
            assert one["resources"] == [resources.get(found["resource"]) for found in one["resources"]]
            assert one["freshness"] == version["freshness"]
    shown = [entry["metadata"] for entry in ours["items"]]
    assert shown == [entry["metadata"] for entry in theirs["items"] if entry["metadata"] in shown]
