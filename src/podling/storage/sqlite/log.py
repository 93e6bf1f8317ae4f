"""The data file: opening and checking it, and its table, the log of revisions. Runs on the worker's thread
only.

The row id is the revision. The store assigns it, one above the newest of log and compaction, so a revision is
not used again even when its row was compacted.

One podling at a time opens the file, and only if it is undamaged and of a known format. Beside it are its
lock and the newest acknowledged revision (`newest.py`). The check uses a read-only connection: when SQLite
closes a connection that can write, it moves what it takes for the write-ahead log into the file, and would do
so with a damaged one.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from podling.storage.interface import CompactedError, Event, Record
from podling.storage.sealing import NOTHING_SEALED, SEALED, Opened, PassingError, SealedValueError, Sealing
from podling.storage.sqlite.newest import Newest
from podling.storage.sqlite.whole import (
    LOST,
    DamagedFileError,
    DataFileError,
    SealedFileError,
    check,
    check_structure,
    checksum,
    fault,
)

APPLICATION_ID = int.from_bytes(b"podl")
FORMAT = 2
UNCHECKED = 1
"""Format 1: without checksums, without a count of its rows, and without a file of the newest revision."""
NEW = 0

# The columns a scan needs come before the value, which spills over to further pages. `previous` is the
# revision the write replaced, 0 for none. `value` is NULL for a deletion. `compacted` has one row: up to
# which revision, and how many rows are left up to there. Above it there is a row for each revision.
_TABLES = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    previous INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    value BLOB
);
CREATE TABLE compacted (revision INTEGER NOT NULL, rows INTEGER NOT NULL);
"""

_MAKE = f"""
BEGIN IMMEDIATE;
{_TABLES}
INSERT INTO compacted VALUES (0, 0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""

_UPGRADE = f"""
BEGIN IMMEDIATE;
ALTER TABLE log RENAME TO old_log;
ALTER TABLE compacted RENAME TO old_compacted;
{_TABLES}
INSERT INTO log SELECT revision, key, previous, checksum(revision, key, previous, value), value FROM old_log;
INSERT INTO compacted SELECT revision, (SELECT count(*) FROM log WHERE log.revision <= old_compacted.revision)
FROM old_compacted;
DROP TABLE old_log;
DROP TABLE old_compacted;
PRAGMA user_version = {FORMAT};
COMMIT;
"""

_HISTORY = """
SELECT log.revision, log.key, log.value, log.previous, replaced.value
FROM log LEFT JOIN log AS replaced ON replaced.revision = log.previous
WHERE log.revision > :after AND log.revision <= :upto AND substr(log.key, 1, length(:prefix)) = :prefix
ORDER BY log.revision
"""

# A replaced row goes once the write that replaced it is compacted: events that stay keep their `previous`.
_REMOVE = (
    """DELETE FROM log WHERE revision IN
       (SELECT previous FROM log WHERE revision > :since AND revision <= :upto AND previous > 0)""",
    "DELETE FROM log WHERE revision > :since AND revision <= :upto AND value IS NULL",
)


class DataFile(NamedTuple):
    connection: sqlite3.Connection
    newest: Newest
    lock: int

    def close(self) -> None:
        self.connection.close()
        self.newest.close()
        os.close(self.lock)


def open_file(path: Path) -> DataFile:
    """Open or create the data file and the files beside it. Raises DataFileError; then nothing was
    changed."""
    lock = _lock(path)
    try:
        newest = _newest(path)
        found = _look(path, newest)
        # Before the file is of this format: one that is and has no newest revision beside it has lost it.
        newest = newest or Newest.make(newest_path(path))
        return DataFile(_connect(path, found), newest, lock)
    except OSError as error:
        os.close(lock)
        raise DataFileError(f"cannot open {error.filename or path}: {error.strerror}") from error
    except BaseException:
        os.close(lock)
        raise


def newest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.newest")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that changes nothing in the file. Its creation and its use raise
    DataFileError."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise fault(path, error) from error


def format_of(connection: sqlite3.Connection, path: Path) -> int:
    """The format of the tables in the file, NEW when there are none. Raises DataFileError, sqlite3.Error."""
    application = _pragma(connection, "application_id")
    found = _pragma(connection, "user_version")
    if (application, found) == (0, NEW) and _pragma(connection, "schema_version") == 0:
        return NEW
    if application != APPLICATION_ID:
        raise DataFileError(f"{path} is not a podling data file")
    if found not in (UNCHECKED, FORMAT):
        raise DataFileError(
            f"{path} was written by another version of podling: "
            f"its data format is {found}, this podling reads format {FORMAT}"
        )
    return found


def _lock(path: Path) -> int:
    # Beside the file, not on it: closing any descriptor of the file itself would drop SQLite's own locks.
    try:
        lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise DataFileError(f"cannot open {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise DataFileError(f"{path} is in use by another podling") from error
    return lock


def _newest(path: Path) -> Newest | None:
    """The newest acknowledged revision; None when its file does not exist."""
    try:
        return Newest(newest_path(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DamagedFileError(newest_path(path), str(error), LOST) from error


def _look(path: Path, newest: Newest | None) -> int:
    """Check that the file is undamaged; returns its format."""
    if not (path.exists() and path.stat().st_size):
        # Before SQLite opens it: it would remove the write-ahead log of a file that is not there.
        if newest is not None and newest.revision:
            raise DamagedFileError(path, f"it is gone, and held writes up to revision {newest.revision}")
        return NEW
    with reading(path) as connection:
        found = format_of(connection, path)
        if found == UNCHECKED:
            check_structure(connection, path)
        elif found == FORMAT and newest is None:
            missing = f"it is missing, and says how far {path.name} has come"
            raise DamagedFileError(newest_path(path), missing, LOST)
        elif found == FORMAT and newest is not None:
            check(connection, path, newest.revision)
        return found


def _connect(path: Path, found: int) -> sqlite3.Connection:
    """A connection for writing; a file of an older format `found` is upgraded."""
    # Made by hand so that only its owner can read it: it holds secrets. SQLite gives its WAL the same mode.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        if found == NEW:
            connection.executescript(_MAKE)
        elif found == UNCHECKED:
            connection.create_function("checksum", 4, checksum, deterministic=True)
            connection.executescript(_UPGRADE)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        connection.close()
        raise fault(path, error) from error
    return connection


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


class State(NamedTuple):
    """What a log holds when it is opened."""

    records: dict[str, Record]
    revision: int
    compacted: int
    marks: Mapping[str, bytes] = {}
    """With what values are sealed, by their keys: those that are."""


class Log:
    def __init__(self, path: Path, sealing: Sealing | None = None) -> None:
        """Raises DataFileError."""
        self._path = path
        self._sealing = sealing
        self._file = open_file(path)
        self._connection = self._file.connection
        if sealing is not None:
            # What was there before is not left in the pages that a rewrite frees.
            self._connection.execute("PRAGMA secure_delete = ON")

    def load(self) -> State:
        """What the log holds, opened. Raises SealedFileError."""
        records: dict[str, Record] = {}
        newest, unreadable = 0, 0
        for newest, key, value in self._connection.execute(
            "SELECT revision, key, value FROM log ORDER BY revision"
        ):
            replaced = records.pop(key, None)
            if replaced is not None and not self._opens(replaced):
                unreadable = newest
            if value is not None:
                records[key] = Record(key, value, newest)
        marks = self._open_all(records)
        if unreadable:
            # A key that is gone is missed by what was replaced alone: by nobody but a watch of the past.
            self.compact(unreadable)
        compacted = self._compacted()
        revision = max(newest, compacted)
        # What a kill kept from being noted is public from now on.
        self._file.newest.note(revision)
        return State(records, revision, compacted, marks)

    def revision(self) -> int:
        newest: int = self._connection.execute("SELECT coalesce(max(revision), 0) FROM log").fetchone()[0]
        return max(newest, self._compacted())

    def append(self, events: Sequence[Event]) -> Mapping[str, bytes]:
        """Insert all events in one transaction, durable on return. Returns the marks of what was sealed.

        It is one statement because Python's sqlite3 releases the interpreter lock for each: with a busy event
        loop, getting it back takes up to five milliseconds.
        """
        marks: dict[str, bytes] = {}
        if not events:
            return marks
        values: list[object] = []
        sealing = self._sealing
        for revision, key, value, replaced in events:
            previous = replaced.revision if replaced else 0
            if sealing is not None:
                marks.pop(key, None)
                if value is not None:
                    value, mark = sealing.seal(key, value)
                    if mark:
                        marks[key] = mark
            values += revision, key, previous, checksum(revision, key, previous, value), value
        self._connection.execute(_insert(len(events)), values)
        self._file.newest.note(events[-1].revision)
        return marks

    def history(self, prefix: str, after: int, upto: int) -> Sequence[Event]:
        if after < (compacted := self._compacted()):
            raise CompactedError(compacted)
        rows = self._connection.execute(_HISTORY, {"prefix": prefix, "after": after, "upto": upto})
        try:
            return [
                Event(
                    revision,
                    key,
                    value and self._opened(key, value).value,
                    Record(key, self._opened(key, replaced).value, previous) if previous else None,
                )
                for revision, key, value, previous, replaced in rows
            ]
        except SealedValueError as error:
            # Its key was taken away since: what was replaced is as if it had been compacted.
            raise CompactedError(upto) from error

    def compact(self, upto: int) -> None:
        since = self._compacted()
        if upto <= since:
            return
        span = {"since": since, "upto": upto}
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            removed = sum(self._connection.execute(statement, span).rowcount for statement in _REMOVE)
            self._connection.execute(
                "UPDATE compacted SET revision = ?, rows = rows + ?", (upto, upto - since - removed)
            )

    def leap(self, revision: int) -> None:
        """Continue above `revision` with everything compacted: no revision below it can be read any more."""
        self._connection.execute("UPDATE compacted SET revision = ?", (revision,))
        self._file.newest.note(revision)

    def probe(self) -> None:
        """Raises sqlite3.Error when the file cannot be read."""
        self._compacted()

    def close(self) -> None:
        self._file.close()

    def _open_all(self, records: dict[str, Record]) -> Mapping[str, bytes]:
        """Opens them in their place; returns the marks of those that are sealed."""
        marks: dict[str, bytes] = {}
        held = records.items()
        if self._sealing is None:
            held = {key: record for key, record in held if record.value.startswith(SEALED)}.items()
        for key, record in held:
            try:
                value, mark = self._opened(key, record.value)
            except PassingError as error:
                raise DataFileError(f"{self._path} holds {key}, which cannot be read now: {error}") from error
            except SealedValueError as error:
                raise SealedFileError(self._path, key, str(error)) from error
            if value is not record.value:
                records[key] = Record(key, value, record.revision)
            if mark:
                marks[key] = mark
        return marks

    def _opens(self, record: Record) -> bool:
        """Raises DataFileError when nobody can say."""
        try:
            self._opened(record.key, record.value)
        except PassingError as error:
            why = f"{self._path} holds {record.key}, which cannot be read now: {error}"
            raise DataFileError(why) from error
        except SealedValueError:
            return False
        return True

    def _opened(self, key: str, stored: bytes) -> Opened:
        if self._sealing is None and not stored.startswith(SEALED):
            return Opened(stored, b"")
        return (self._sealing or NOTHING_SEALED).open(key, stored)

    def _compacted(self) -> int:
        revision: int = self._connection.execute("SELECT revision FROM compacted").fetchone()[0]
        return revision


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO log VALUES {', '.join(['(?, ?, ?, ?, ?)'] * rows)}"


def is_passing(error: Exception) -> bool:
    """Whether a later write may succeed (a full disk). After any other failure, above all of an fsync, what
    reached the disk is unknown until the file is opened again."""
    primary_code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return primary_code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)
