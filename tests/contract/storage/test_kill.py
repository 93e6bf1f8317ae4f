"""`kill -9` at any moment (R-SYS-7): what was acknowledged is there afterwards, no revision is used again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from podling.storage import sqlite

WRITER = Path(__file__).with_name("kill_writer.py")
LIVES = 10
WRITERS = 8


def _live_and_die(path: Path, life: int, lines: int) -> list[str]:
    """What the writer said: at least `lines` before the kill, and all that was in the pipe after it."""
    writer = subprocess.Popen([sys.executable, WRITER, path, str(life)], stdout=subprocess.PIPE)
    assert writer.stdout
    with writer.stdout as stdout:
        said = [_line(stdout) for _ in range(lines)]
        os.kill(writer.pid, signal.SIGKILL)
        said += [line.decode().strip() for line in stdout if line.endswith(b"\n")]
    assert writer.wait() == -signal.SIGKILL
    return said


def _line(stdout: IO[bytes]) -> str:
    line = stdout.readline().decode()
    assert line, "the writer ended by itself"
    return line.strip()


async def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    acknowledged: dict[str, tuple[int, str]] = {}
    revisions: set[int] = set()
    for life in range(LIVES):
        opened, *writes = _live_and_die(path, life, lines=40 + 61 * life)
        assert int(opened.split()[1]) >= max(revisions, default=0)
        for key, revision, value in (line.split() for line in writes):
            assert int(revision) not in revisions, "a revision was used twice"
            revisions.add(int(revision))
            acknowledged[key] = (int(revision), value)

    storage = await sqlite.open(path)
    assert storage.revision >= max(revisions)
    overtaken = [
        key
        for key, (revision, value) in acknowledged.items()
        if await _was_overtaken(storage, key, revision, value)
    ]
    await storage.close()
    # What was under way when the process died may have come after the acknowledged: one write of each writer.
    for life in range(LIVES):
        assert len([key for key in overtaken if f"/{life}/" in key]) <= WRITERS


async def _was_overtaken(storage: sqlite.SqliteStorage, key: str, revision: int, value: str) -> bool:
    """False when the acknowledged write is what stands. That something older stands is never right."""
    record = await storage.get(key)
    if record is None:
        return value != "-"
    assert record.revision >= revision, "an acknowledged write was lost"
    if record.revision == revision:
        assert record.value.decode() == value
    return record.revision > revision
