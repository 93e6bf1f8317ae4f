"""The data file: opened by one podling at a time, and only when it is of this podling's format."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

APPLICATION_ID = int.from_bytes(b"podl")
FORMAT = 1

# The columns a scan needs come before the value, which spills over to further pages. `previous` is the
# revision the write replaced, 0 for none. `value` is NULL for a deletion. `compacted` has one row.
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB);
CREATE TABLE compacted (revision INTEGER NOT NULL);
INSERT INTO compacted VALUES (0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


class DataFileError(Exception):
    """The data file cannot be used; the message tells the user why."""


class DataFile(NamedTuple):
    connection: sqlite3.Connection
    lock: int

    def close(self) -> None:
        self.connection.close()
        os.close(self.lock)


def open_file(path: Path) -> DataFile:
    """Open or make the file and its lock. Raises DataFileError."""
    lock = _lock(path)
    try:
        return DataFile(_connect(path), lock)
    except BaseException:
        os.close(lock)
        raise


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


def _connect(path: Path) -> sqlite3.Connection:
    # Made by hand so that only its owner can read it: it holds secrets. SQLite gives its WAL the same mode.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        _check_format(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        connection.close()
        raise DataFileError(f"cannot open {path}: {error}") from error
    except DataFileError:
        connection.close()
        raise
    return connection


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    application = _pragma(connection, "application_id")
    found = _pragma(connection, "user_version")
    if (application, found) == (0, 0) and _pragma(connection, "schema_version") == 0:
        connection.executescript(_SCHEMA)
    elif application != APPLICATION_ID:
        raise DataFileError(f"{path} is not a podling data file")
    elif found != FORMAT:
        raise DataFileError(
            f"{path} was written by another version of podling: "
            f"its data format is {found}, this podling reads format {FORMAT}"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
