"""R-EPH-7: the audit log's file: nothing is left out, the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podling.apiserver.observe import audit_batches as module
from podling.apiserver.observe.audit_file import AuditFile, audit_file
from podling.apiserver.observe.audit_rotation import Rotation, backups
from podling.model.time import SystemClock

CLOCK = SystemClock()


async def test_everything_is_in_the_file_in_order(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    async with audit_file(path, CLOCK) as audit:
        for n in range(1000):
            audit.write(b"%d" % n)
            if n % 100 == 0:
                await asyncio.sleep(0)
    assert path.read_bytes() == b"".join(b"%d\n" % n for n in range(1000))
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_is_there_is_gone_on_with(tmp_path: Path) -> None:
    for line in (b"a", b"b"):
        async with audit_file(tmp_path / "audit.log", CLOCK) as audit:
            audit.write(line)
    assert (tmp_path / "audit.log").read_bytes() == b"a\nb\n"


async def test_a_file_that_is_long_makes_room_for_another(tmp_path: Path) -> None:
    audit = AuditFile(tmp_path / "audit.log", CLOCK, Rotation(max_bytes=4))
    for line in (b"one", b"two", b"3"):
        audit.write(line)
        await audit.deliver_next()
    assert (tmp_path / "audit.log").read_bytes() == b"3\n"
    old = sorted(backup.path.read_bytes() for backup in backups(tmp_path / "audit.log"))
    assert old == [b"one\n", b"two\n"], "nothing that is rotated is lost"


async def test_who_writes_too_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CROWDED_BYTES", 3)
    audit = AuditFile(tmp_path / "audit.log", CLOCK)
    audit.write(b"one")
    assert audit.full
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(audit.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        running = tasks.create_task(audit.run())
        await waiting
        running.cancel()
    assert not audit.full


async def test_a_disk_that_refuses_is_told_of_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "gone"
    audit = AuditFile(folder / "audit.log", CLOCK)
    for _ in range(2):
        audit.write(b"lost")
        await audit.deliver_next()
    assert audit.lost == 2 and "No such file" in audit.fault
    assert caplog.text.count("the audit log cannot be written") == 1
    folder.mkdir()
    audit.write(b"kept")
    await audit.deliver_next()
    assert audit.fault == "" and (folder / "audit.log").read_bytes() == b"kept\n"


async def test_lines_that_come_soon_after_each_other_are_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[list[bytes]] = []
    monkeypatch.setattr(AuditFile, "_append", lambda self, lines: writes.append(lines))
    async with audit_file(tmp_path / "audit.log", CLOCK) as audit:
        for n in range(10):
            audit.write(b"%d" % n)
            await asyncio.sleep(0)
    assert [lines for lines in writes if lines] == [[b"%d" % n for n in range(10)]]
