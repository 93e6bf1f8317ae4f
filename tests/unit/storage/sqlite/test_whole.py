"""What a disk can do to a data file is noticed when it is opened, and nothing of the file is touched then."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podling.storage.interface import Event, Record
from podling.storage.sqlite.log import Log
from podling.storage.sqlite.whole import DamagedFileError, DataFileError, checksum

WRITES = 120
Content = tuple[object, object]


def _write(log: Log, first: int, count: int) -> None:
    """Creations, updates and deletions of a few keys."""
    standing = log.load().records
    for revision in range(first, first + count):
        key = f"/registry/pods/default/neato-{revision % 17}"
        before = standing.pop(key, None)
        value = None if before and revision % 5 == 0 else b"%d " % revision * (revision % 700)
        log.append([Event(revision, key, value, before)])
        if value is not None:
            standing[key] = Record(key, value, revision)


def _content(path: Path) -> Content:
    log = Log(path)
    try:
        state = log.load()
        return state, list(log.history("", state.compacted, state.revision))
    finally:
        log.close()


def _files(folder: Path) -> dict[str, bytes]:
    """All but what is shared between processes that have the file open, the lock, and an empty write-ahead
    log, which is as good as none."""
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix not in (".db-shm", ".lock")}
    return {name: content for name, content in files.items() if content or not name.endswith("-wal")}


class Copies:
    """Copies of one store, each to be damaged in its own way."""

    def __init__(self, source: Path, made: Path) -> None:
        self._source = source
        self._made = made
        self._count = 0
        self.content = _content(self.make())

    def make(self) -> Path:
        self._count += 1
        folder = self._made / str(self._count)
        shutil.copytree(self._source, folder, ignore=shutil.ignore_patterns("*-shm", "*.lock"))
        return folder / "state.db"


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Copies]:
    """A store as a kill leaves it: the last writes are in the write-ahead log."""
    (tmp_path / "store").mkdir()
    log = Log(tmp_path / "store" / "state.db")
    _write(log, 1, WRITES)
    log.compact(WRITES // 2)
    log._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _write(log, WRITES + 1, 20)
    yield Copies(tmp_path / "store", tmp_path / "copies")
    log.close()


@pytest.fixture
def closed(tmp_path: Path) -> Copies:
    (tmp_path / "store").mkdir()
    log = Log(tmp_path / "store" / "state.db")
    _write(log, 1, WRITES)
    log.compact(WRITES // 2)
    log.close()
    return Copies(tmp_path / "store", tmp_path / "copies")


def _refused(path: Path, why: str) -> None:
    before = _files(path.parent)
    with pytest.raises(DamagedFileError, match=why) as refusal:
        Log(path)
    assert str(path.parent) in str(refusal.value) and "podling restore" in str(refusal.value)
    assert _files(path.parent) == before, "nothing was touched"


def test_a_write_ahead_log_that_is_gone_is_noticed(killed: Copies) -> None:
    path = killed.make()
    path.with_name("state.db-wal").unlink()
    _refused(path, "ends at revision 120, but 140 was acknowledged")


def test_a_write_ahead_log_that_was_cut_off_is_noticed(killed: Copies) -> None:
    path = killed.make()
    log = path.with_name("state.db-wal")
    log.write_bytes(log.read_bytes()[:-5000])
    _refused(path, "but 140 was acknowledged")


def test_nothing_of_a_killed_store_is_missing_when_nothing_happened(killed: Copies) -> None:
    assert _content(killed.make()) == killed.content


def test_a_data_file_that_is_gone_is_noticed(killed: Copies) -> None:
    path = killed.make()
    path.unlink()
    _refused(path, "it is gone, and held writes up to revision 140")
    path.touch()
    _refused(path, "it is gone, and held writes up to revision 140")


def test_the_newest_revision_that_is_gone_is_noticed(closed: Copies) -> None:
    path = closed.make()
    path.with_name("state.db.newest").unlink()
    _refused(path, r"state.db.newest is damaged: it is missing")


def test_the_newest_revision_that_was_changed_is_noticed(closed: Copies) -> None:
    path = closed.make()
    path.with_name("state.db.newest").write_bytes(bytes(range(32)))
    _refused(path, r"state.db.newest is damaged: neither of its two copies is whole")


def _change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE log SET value = x'00' WHERE revision = 101", "revision 101 was changed"),
        ("UPDATE log SET key = key || 'x' WHERE revision = 100", "revision 100 was changed"),
        ("UPDATE log SET previous = 1 WHERE revision = 100", "revision 100 was changed"),
        ("UPDATE log SET value = NULL WHERE revision = 101", "revision 101 was changed"),
        ("DELETE FROM log WHERE revision = 100", "revision 100 is missing"),
        ("DELETE FROM log WHERE revision = 120", "ends at revision 119, but 120 was acknowledged"),
        ("DELETE FROM log WHERE revision = 59", "objects written up to revision 60 are missing"),
        ("DELETE FROM log", "revision 60 are missing"),
        ("DROP TABLE log", "no such table: log"),
    ],
)
def test_a_change_by_another_hand_is_noticed(statement: str, why: str, closed: Copies) -> None:
    path = closed.make()
    _change(path, statement)
    _refused(path, why)


def _any_damage(copies: Copies, name: str, damage: Callable[[random.Random, bytearray], None]) -> None:
    """Whatever was done to the file, it is refused, or everything is there and it can be gone on with."""
    refused = 0
    for seed in range(60):
        path = copies.make()
        content = bytearray(path.with_name(name).read_bytes())
        damage(random.Random(seed), content)
        path.with_name(name).write_bytes(content)
        before = _files(path.parent)
        try:
            log = Log(path)
        except DataFileError as refusal:
            assert "\n" not in str(refusal) and str(path) in str(refusal)
            assert _files(path.parent) == before, f"seed {seed}: touched although it was refused"
            refused += 1
            continue
        _write(log, log.load().revision + 1, 5)
        log.close()
        (state, history), (was, past) = _content(path), copies.content
        assert state.revision == was.revision + 5, f"seed {seed}"  # type: ignore[attr-defined]
        assert history[:-5] == past, f"seed {seed}"  # type: ignore[index]
        shutil.rmtree(path.parent)
    assert refused > 10


def _flip(choices: random.Random, content: bytearray) -> None:
    content[choices.randrange(len(content))] ^= 1 << choices.randrange(8)


def _cut(choices: random.Random, content: bytearray) -> None:
    del content[choices.randrange(len(content)) :]


def _blank(choices: random.Random, content: bytearray) -> None:
    start = choices.randrange(len(content) // 512) * 512
    content[start : start + 512] = bytes(len(content[start : start + 512]))


@pytest.mark.parametrize("damage", [_flip, _cut, _blank])
def test_any_damage_of_the_data_file(damage: Callable[..., None], closed: Copies) -> None:
    _any_damage(closed, "state.db", damage)


@pytest.mark.parametrize("damage", [_flip, _cut, _blank])
def test_any_damage_of_the_write_ahead_log(damage: Callable[..., None], killed: Copies) -> None:
    _any_damage(killed, "state.db-wal", damage)


def test_the_checksum_is_of_the_whole_row() -> None:
    row = (7, "/registry/pods/a", 3, b"x" * 12_000)
    others = [
        (8, *row[1:]),
        (7, "/registry/pods/b", *row[2:]),
        (7, row[1], 4, row[3]),
        (*row[:3], row[3] + b"x"),
    ]
    deletion, empty = checksum(7, row[1], 3, None), checksum(7, row[1], 3, b"")
    assert len({checksum(*row), deletion, empty, *(checksum(*other) for other in others)}) == 7
