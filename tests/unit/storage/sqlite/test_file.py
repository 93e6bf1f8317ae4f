"""Which data files are opened, and what the user is told of the others."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from podling.storage.interface import Event, Record
from podling.storage.sqlite.log import APPLICATION_ID, FORMAT, Log, State, open_file
from podling.storage.sqlite.whole import DamagedFileError, DataFileError


def test_a_new_file_is_made_and_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    open_file(path).close()
    file = open_file(path)
    assert file.connection.execute("SELECT count(*) FROM log").fetchone() == (0,)
    file.close()


def test_every_commit_is_on_the_disk(tmp_path: Path) -> None:
    file = open_file(tmp_path / "podling.db")
    assert file.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert file.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.close()


def test_only_the_owner_can_read_the_secrets_in_it(tmp_path: Path) -> None:
    file = open_file(tmp_path / "podling.db")
    file.connection.execute("INSERT INTO log VALUES (1, '/registry/secrets/default/s', 0, 0, x'')")
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "podling.db": 0o600,
        "podling.db-wal": 0o600,
        "podling.db-shm": 0o600,
        "podling.db.lock": 0o600,
        "podling.db.newest": 0o600,
    }
    file.close()


def test_a_file_in_use_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    first = open_file(path)
    with pytest.raises(DataFileError, match=r"podling\.db is in use by another podling"):
        open_file(path)
    first.close()
    open_file(path).close()


def test_the_file_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    file = open_file(path)
    file.connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    file.close()
    before = path.read_bytes()
    with pytest.raises(
        DataFileError, match=f"its data format is {FORMAT + 1}, this podling reads format {FORMAT}"
    ):
        open_file(path)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(DataFileError, match=r"other\.db is not a podling data file"):
        open_file(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    path.write_bytes(b"apiVersion: v1\n" * 100)
    with pytest.raises(DataFileError, match="file is not a database"):
        open_file(path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"cannot open .*nowhere/podling\.db: No such file or directory"):
        open_file(tmp_path / "nowhere" / "podling.db")


def test_a_refused_file_is_not_kept_locked(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    path.write_bytes(b"apiVersion: v1\n" * 100)
    with pytest.raises(DataFileError):
        open_file(path)
    path.unlink()
    open_file(path).close()


# What podling 0.1 made before its rows had checksums.
_FORMAT_1 = f"""
CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB);
CREATE TABLE compacted (revision INTEGER NOT NULL);
INSERT INTO compacted VALUES (3);
INSERT INTO log VALUES (2, '/a', 1, CAST('a2' AS BLOB)), (4, '/b', 0, x''), (5, '/a', 2, CAST('a5' AS BLOB)),
    (6, '/b', 4, NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""
A2, B4 = Record("/a", b"a2", 2), Record("/b", b"", 4)


def _format_1(path: Path) -> None:
    old = sqlite3.connect(path, isolation_level=None)
    old.executescript(_FORMAT_1)
    old.close()


def test_a_file_of_an_older_podling_is_made_into_one_of_today(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    _format_1(path)
    for _ in range(2):
        log = Log(path)
        assert log.load() == State({"/a": Record("/a", b"a5", 5)}, revision=6, compacted=3)
        assert log.history("", 3, 6) == [
            Event(4, "/b", b"", None),
            Event(5, "/a", b"a5", A2),
            Event(6, "/b", None, B4),
        ]
        log.close()
    path.with_name("podling.db.newest").unlink()
    with pytest.raises(DamagedFileError):
        open_file(path)


def test_a_damaged_file_of_an_older_podling_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "podling.db"
    _format_1(path)
    path.write_bytes(path.read_bytes()[:-4096])
    before = path.read_bytes()
    with pytest.raises(DamagedFileError, match=r"podling\.db is damaged"):
        open_file(path)
    assert path.read_bytes() == before
