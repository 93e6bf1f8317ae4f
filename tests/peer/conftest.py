"""One Kubernetes API server and one podling API server for all tests here. They are asked the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from peer import control_plane, counted
from peer.server import Server

RANGES = "/apis/networking.k8s.io/v1/servicecidrs"


@pytest.fixture(scope="module", autouse=True)
def no_less_is_compared(request: pytest.FixtureRequest) -> Iterator[None]:
    """As much as docs/compared.md says of this file, if all of it was asked for and nothing failed."""
    failed = request.session.testsfailed
    yield
    options = request.config.option
    is_part = options.keyword or options.markexpr or any("::" in one for one in request.config.args)
    if is_part or "PODLING_UPSTREAM" not in os.environ or request.session.testsfailed > failed:
        return
    file = request.path.name
    now = counted.compared().get(file, counted.NOTHING)
    if "PODLING_RECORD" in os.environ:
        counted.record(file, now)
    written = counted.documented().get(file, counted.NOTHING)
    assert now.sequences >= written.sequences, f"{file} compares less than docs/compared.md says: {now}"


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
