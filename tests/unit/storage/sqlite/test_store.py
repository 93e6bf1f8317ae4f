"""How writes share a group, and what becomes of them when the disk does not take it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from podling.storage import sqlite
from podling.storage.interface import ConflictError, Event, KeyExistsError, Record, StorageClosedError
from podling.storage.sqlite.log import Log
from podling.storage.sqlite.store import GROUP_ROWS, SqliteStorage
from podling.storage.sqlite.worker import Worker

POD = "/registry/pods/default/neato"
BIG = bytes(100_000)


class Disk:
    """A store on a real file, whose disk fills up and breaks on request."""

    def __init__(self, worker: Worker, log: CountingLog, store: SqliteStorage) -> None:
        self._worker = worker
        self._log = log
        self.store = store

    @property
    def groups(self) -> list[int]:
        return self._log.groups

    async def fill(self) -> None:
        await self._set("max_page_count = 1")

    async def free(self) -> None:
        await self._set("max_page_count = 1000000")

    async def fault(self) -> None:
        await self._set("query_only = ON")

    async def mend(self) -> None:
        await self._set("query_only = OFF")

    async def _set(self, pragma: str) -> None:
        await self._worker.call(lambda: self._log._connection.execute(f"PRAGMA {pragma}").fetchall())


class CountingLog(Log):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.groups: list[int] = []

    def append(self, events: Sequence[Event]) -> Mapping[str, bytes]:
        self.groups.append(len(events))
        return super().append(events)


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Disk]:
    worker = Worker()
    log = await worker.call(partial(CountingLog, tmp_path / "podling.db"))
    store = SqliteStorage(worker, log, await worker.call(log.load))
    yield Disk(worker, log, store)
    await store.close()


async def _outcomes(*writes: object) -> list[object]:
    """What each write came to: its revision, or the class of what it raised."""
    found = await asyncio.gather(*writes, return_exceptions=True)  # type: ignore[call-overload]
    return [type(outcome) if isinstance(outcome, Exception) else outcome for outcome in found]


async def test_writes_of_one_turn_of_the_loop_share_one_fsync(disk: Disk) -> None:
    await asyncio.gather(*(disk.store.create(f"{POD}-{n}", b"") for n in range(8)))
    assert disk.groups == [8]


async def test_a_group_is_bounded(disk: Disk) -> None:
    await asyncio.gather(*(disk.store.create(f"{POD}-{n}", b"") for n in range(2 * GROUP_ROWS + 1)))
    assert disk.groups == [GROUP_ROWS, GROUP_ROWS, 1]


async def test_a_write_on_its_way_is_not_public(disk: Disk) -> None:
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(disk.store.create(POD, b"v1"))
        await asyncio.sleep(0)
        assert await disk.store.get(POD) is None
        assert disk.store.revision == 0
        assert await writer == 1
        assert await disk.store.get(POD) == Record(POD, b"v1", 1)


async def test_a_refusal_comes_after_the_write_it_rests_on(disk: Disk) -> None:
    answers: list[str] = []

    async def create(value: bytes) -> None:
        try:
            answers.append(f"created {await disk.store.create(POD, value)}")
        except KeyExistsError as exists:
            answers.append(f"exists {exists.record.revision}, public {disk.store.revision}")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(create(b"v1"))
        tasks.create_task(create(b"v2"))
    assert answers == ["created 1", "exists 1, public 1"]


async def test_closing_lets_writes_under_way_finish(disk: Disk, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        writers = [tasks.create_task(disk.store.create(f"{POD}-{n}", b"")) for n in range(2 * GROUP_ROWS)]
        await asyncio.sleep(0)
        await disk.store.close()
        assert all(writer.done() for writer in writers)
    reopened = await sqlite.open(tmp_path / "podling.db")
    assert len((await reopened.list("")).records) == 2 * GROUP_ROWS
    await reopened.close()


async def test_on_a_full_disk_nothing_is_acknowledged_nor_seen(disk: Disk) -> None:
    seen: list[Event] = []
    disk.store.watch("", lambda _, events: seen.extend(events))
    await disk.store.create(POD, b"v1")
    await disk.fill()
    outcomes = await _outcomes(
        disk.store.update(POD, BIG, 1),
        disk.store.update(POD, b"rests on the one before", 2),
        disk.store.create(f"{POD}-2", b""),
        disk.store.create(f"{POD}-2", b"refused, had the one before stood"),
    )
    assert outcomes == [StorageClosedError] * 4
    assert (await disk.store.list("")).records == [Record(POD, b"v1", 1)]
    assert disk.store.revision == 1
    assert [event.revision for event in seen] == [1]


async def test_writes_waiting_behind_a_failed_group_fail_with_it(disk: Disk) -> None:
    await disk.fill()
    outcomes = await _outcomes(*(disk.store.create(f"{POD}-{n}", BIG) for n in range(GROUP_ROWS + 1)))
    assert outcomes == [StorageClosedError] * (GROUP_ROWS + 1)
    assert disk.groups == [GROUP_ROWS]


async def test_a_full_disk_passes(disk: Disk) -> None:
    await disk.fill()
    with pytest.raises(StorageClosedError, match="database or disk is full"):
        await disk.store.create(POD, BIG)
    with pytest.raises(StorageClosedError, match="the last write failed"):
        await disk.store.probe()
    await disk.free()
    assert await disk.store.create(POD, BIG) == 1
    await disk.store.probe()
    with pytest.raises(ConflictError):
        await disk.store.update(POD, b"v2", 7)


async def test_after_any_other_fault_no_write_is_taken_until_reopened(disk: Disk, tmp_path: Path) -> None:
    await disk.store.create(POD, b"v1")
    await disk.fault()
    with pytest.raises(StorageClosedError, match="attempt to write a readonly database"):
        await disk.store.update(POD, b"v2", 1)
    await disk.mend()
    with pytest.raises(StorageClosedError, match="attempt to write a readonly database"):
        await disk.store.update(POD, b"v2", 1)
    with pytest.raises(StorageClosedError, match="attempt to write a readonly database"):
        await disk.store.probe()
    assert await disk.store.get(POD) == Record(POD, b"v1", 1)

    await disk.store.close()
    reopened = await sqlite.open(tmp_path / "podling.db")
    assert await reopened.update(POD, b"v2", 1) == 2
    await reopened.close()


async def test_a_compaction_that_fails_says_so(disk: Disk) -> None:
    await disk.store.update(POD, b"v2", await disk.store.create(POD, b"v1"))
    await disk.fault()
    with pytest.raises(StorageClosedError, match="attempt to write a readonly database"):
        await disk.store.compact(2)


async def test_a_key_that_is_not_text_fails_alone(disk: Disk) -> None:
    outcomes = await _outcomes(disk.store.create("/registry/pods/\udc80", b""), disk.store.create(POD, b""))
    assert outcomes == [UnicodeEncodeError, 1]


async def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(sqlite.DataFileError, match="No such file or directory"):
        await sqlite.open(tmp_path / "nowhere" / "podling.db")
