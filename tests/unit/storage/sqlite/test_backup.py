"""A copy holds what was acknowledged before it began, and a store goes on from it without going back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podling.storage import sqlite
from podling.storage.interface import CompactedError, Record
from podling.storage.sqlite.backup import LEAP, Copied, copy, go_on, look, newest_acknowledged
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

POD = "/registry/pods/default/neato"


async def _store(path: Path) -> sqlite.SqliteStorage:
    """Four writes, two objects left."""
    storage = await sqlite.open(path)
    await storage.update(POD, b"v2", await storage.create(POD, b"v1"))
    await storage.create(f"{POD}-2", b"kept")
    await storage.delete(f"{POD}-3", await storage.create(f"{POD}-3", b"gone"))
    return storage


async def test_it_holds_all_that_was_acknowledged_while_writes_go_on(tmp_path: Path) -> None:
    storage = await sqlite.open(tmp_path / "state.db")
    acknowledged = [await storage.create(f"/registry/before/{n}", b"x") for n in range(200)][-1]
    copying: asyncio.Future[Copied] | None = None

    async def write(writer: int) -> None:
        nonlocal acknowledged
        while copying is None or not copying.done():
            acknowledged = max(acknowledged, await storage.create(f"/registry/{writer}/{acknowledged}", b"x"))

    async with asyncio.TaskGroup() as tasks:
        for writer in range(4):
            tasks.create_task(write(writer))
        before = acknowledged
        loop = asyncio.get_running_loop()
        copying = loop.run_in_executor(None, copy, tmp_path / "state.db", tmp_path / "copy.db")
        copied = await copying
    assert before <= copied.revision <= acknowledged
    assert copied.objects == copied.revision
    await storage.close()


async def test_what_a_kill_left_in_the_write_ahead_log_is_in_it(tmp_path: Path) -> None:
    storage = await _store(tmp_path / "state.db")
    assert copy(tmp_path / "state.db", tmp_path / "copy.db") == Copied(revision=5, objects=2)
    await storage.close()


async def test_a_store_goes_on_far_above_it_with_no_history(tmp_path: Path) -> None:
    await (await _store(tmp_path / "state.db")).close()
    copied = copy(tmp_path / "state.db", tmp_path / "copy.db")
    revision = go_on(tmp_path / "copy.db", 0)
    assert revision == copied.revision + LEAP
    storage = await sqlite.open(tmp_path / "copy.db")
    assert storage.revision == revision
    assert (await storage.list("")).records == [Record(POD, b"v2", 2), Record(f"{POD}-2", b"kept", 3)]
    for known in (0, 3, 5, 700):
        with pytest.raises(CompactedError):
            await storage.history("", known)
    assert await storage.history("", revision) == []
    assert await storage.update(POD, b"v3", 2) == revision + 1
    await storage.close()
    assert look(tmp_path / "copy.db") == Copied(revision + 1, 2)


async def test_revisions_do_not_go_back_when_a_copy_is_gone_on_from_twice(tmp_path: Path) -> None:
    await (await _store(tmp_path / "state.db")).close()
    for name in ("one.db", "other.db"):
        copy(tmp_path / "state.db", tmp_path / name)
    first = go_on(tmp_path / "one.db", 0)
    assert newest_acknowledged(tmp_path / "one.db") == first
    assert go_on(tmp_path / "other.db", newest_acknowledged(tmp_path / "one.db")) > first


async def test_a_damaged_file_is_not_taken_for_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await (await _store(path)).close()
    path.write_bytes(path.read_bytes().replace(b"kept", b"kelt"))
    with pytest.raises(DamagedFileError, match="revision 3 was changed"):
        copy(path, tmp_path / "copy.db")


async def test_nor_is_one_that_lost_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    storage = await _store(path)
    lost = path.read_bytes()
    await storage.close()
    path.write_bytes(lost)
    with pytest.raises(DataFileError):
        copy(path, tmp_path / "copy.db")
