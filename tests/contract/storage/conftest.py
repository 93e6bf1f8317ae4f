"""Every test of this folder runs over every back end; over etcd where its program is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from peer.control_plane import etcd_server
from podling.storage import etcd, sqlite
from podling.storage.etcd.connection import Connection
from podling.storage.interface import Storage
from podling.storage.memory import MemoryStorage


@asynccontextmanager
async def opened(back_end: str, directory: Path, programs: Path | None = None) -> AsyncIterator[Storage]:
    """A new store. `programs` has that of etcd."""
    if programs is not None:
        with etcd_server(programs / "etcd", directory, durable=False) as url:
            store = await etcd.open(Connection([url]))
            yield store
            await store.close()
        return
    opened: Storage = MemoryStorage() if back_end == "memory" else await sqlite.open(directory / "podling.db")
    yield opened
    await opened.close()


@pytest.fixture(params=["memory", "sqlite", "etcd"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    programs: Path | None = None
    if request.param == "etcd":
        programs = request.getfixturevalue("kubernetes_programs")
    async with opened(request.param, tmp_path, programs) as store:
        yield store
