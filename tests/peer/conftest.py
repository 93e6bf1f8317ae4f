"""One Kubernetes API server and one podling API server for all tests here. They are asked the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from peer import control_plane
from peer.server import Server


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real API server. Tests that need it are skipped where its programs are not."""
    upstream = os.environ.get("PODLING_UPSTREAM", "")
    if not upstream:
        pytest.skip("PODLING_UPSTREAM, the directory that unpacks Kubernetes' own programs, is not set")
    if not (Path(upstream) / "unpack").is_file():
        pytest.skip(f"there is no {upstream}/unpack to make Kubernetes' own programs with")
    directory = tmp_path_factory.mktemp("kubernetes")
    try:
        with control_plane.kubernetes(Path(upstream), directory) as server:
            yield server
    finally:
        # A third of a gigabyte, which pytest would keep for three runs.
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def podling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("podling")
    with control_plane.podling(directory) as server:
        yield server
