"""Every test of this folder runs over every back end that needs nothing but this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podling.storage import sqlite
from podling.storage.interface import Storage
from podling.storage.memory import MemoryStorage


@pytest.fixture(params=["memory", "sqlite"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    opened: Storage = (
        MemoryStorage() if request.param == "memory" else await sqlite.open(tmp_path / "podling.db")
    )
    yield opened
    await opened.close()
