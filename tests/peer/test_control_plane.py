"""The two servers stand and are asked by the same administrator."""

from __future__ import annotations

import subprocess

import pytest

from peer.server import Server


@pytest.mark.parametrize("name", ["kubernetes", "podling"])
def test_an_administrator_is_let_in(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    said = server.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert said.body["status"]["userInfo"]["username"] == "kubernetes-admin"
    assert set(said.body["status"]["userInfo"]["groups"]) == {"system:masters", "system:authenticated"}


def test_it_is_the_version_podling_speaks(kubernetes: Server, podling: Server) -> None:
    minors = {server.ask("GET", "/version").body["minor"] for server in (kubernetes, podling)}
    assert minors == {"36"}


def test_kubectl_finds_it(kubernetes: Server) -> None:
    said = subprocess.run(
        ["kubectl", "--kubeconfig", kubernetes.kubeconfig, "get", "namespaces", "-o", "name"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "namespace/default" in said.stdout.split()
