"""One Kubernetes API server and one podling API server for all tests here. They are asked the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from peer import control_plane
from peer.server import Server

LAST = "test_compared.py"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What counts the others comes last."""
    items.sort(key=lambda item: item.path.name == LAST)


@pytest.fixture(scope="session")
def kubernetes(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real API server."""
    with control_plane.kubernetes(kubernetes_programs, tmp_path_factory.mktemp("kubernetes")) as server:
        yield server


@pytest.fixture(scope="session")
def podling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("podling")
    with control_plane.podling(directory) as server:
        yield server


@pytest.fixture(scope="module")
def no_ranges_left(kubernetes: Server, podling: Server) -> Iterator[None]:
    """Services of other tests would get addresses of the ranges that these make."""
    yield
    for server in (kubernetes, podling):
        for one in server.ask("GET", RANGES).body["items"]:
            if one["metadata"]["name"] != "kubernetes":
                target = f"{RANGES}/{one['metadata']['name']}"
                patch = {"metadata": {"finalizers": None}}
                server.ask("PATCH", target, patch, Content_Type="application/merge-patch+json")
                server.ask("DELETE", target)
