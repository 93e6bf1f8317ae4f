"""The look at a data file before anything is done with it: is all there that was acknowledged, unchanged?

What it finds is damage, never something to go on without. Each write has a row of its own revision until it
is compacted, so a row that is missing leaves a gap; of what is left of compacted ones, the number is known.
What a row says is held against its checksum, and the file's structure is for SQLite to check.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from podling.storage.sqlite.checksum import checksum

_OF_THE_MOMENT = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    )
)
"""Errors that say nothing about what is in the file."""


class DataFileError(Exception):
    """The data file cannot be used; the message tells the user why."""


class DamagedFileError(DataFileError):
    """The data file has lost something, or something in it was changed. Nothing of it was touched."""

    def __init__(self, path: Path, what: str, otherwise: str = "") -> None:
        super().__init__(f"{path} is damaged: {what}; go back to a backup with `podling restore`{otherwise}")


LOST = ", or give up what was lost with `podling restore --accept-loss`"
"""What can be done, too, when all that is there was once acknowledged."""


def fault(path: Path, error: sqlite3.Error) -> DataFileError:
    """What SQLite says of a file, as the user is told it."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _OF_THE_MOMENT:
        return DataFileError(f"cannot open {path}: {error}")
    return DamagedFileError(path, str(error))


def check(connection: sqlite3.Connection, path: Path, acknowledged: int) -> None:
    """`acknowledged` is the newest revision that was. Raises DamagedFileError, sqlite3.Error."""
    check_structure(connection, path)
    compacted, settled = connection.execute("SELECT revision, rows FROM compacted").fetchone()
    newest = compacted
    for revision, key, previous, noted, value in connection.execute(
        "SELECT revision, key, previous, checksum, value FROM log ORDER BY revision"
    ):
        if not isinstance(value, bytes | None) or checksum(revision, key, previous, value) != noted:
            raise DamagedFileError(path, f"what was written at revision {revision} was changed")
        if revision <= compacted:
            settled -= 1
        elif revision == newest + 1:
            newest = revision
        else:
            raise DamagedFileError(path, f"revision {newest + 1} is missing")
    if settled:
        raise DamagedFileError(path, f"objects written up to revision {compacted} are missing")
    if newest < acknowledged:
        why = f"it ends at revision {newest}, but {acknowledged} was acknowledged"
        raise DamagedFileError(path, f"{why} (has {path.name}-wal been lost?)", LOST)


def check_structure(connection: sqlite3.Connection, path: Path) -> None:
    """Raises DamagedFileError, sqlite3.Error."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise DamagedFileError(path, " ".join(found.split()))
