"""The check of a data file before it is used: is every acknowledged write in it, unchanged?

Each write has a row of its own revision until it is compacted, so a missing row leaves a gap; the number of
rows that compaction left is recorded. Each row is compared with its checksum, and SQLite checks the structure
of the file. A fault that the check finds is damage: the start is refused.
"""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

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
"""Errors that do not depend on the content of the file."""
# What zlib is given in pieces no larger it reads without giving up Python's interpreter lock, which a thread
# gets back from a busy event loop only after the loop's turn.
_PIECE = 5 * 1024

LOST = ", or give up what was lost with `podling restore --accept-loss`"
"""The user's further choice when writes are lost and the rest is undamaged."""


class DataFileError(Exception):
    """The data file cannot be used; the message is for the user."""


class SealedFileError(DataFileError):
    """A value in the data file cannot be opened with the keys that there are. Nothing was changed."""

    def __init__(self, path: Path, key: str, why: str) -> None:
        super().__init__(f"{path} holds {key}, which cannot be read: {why}")


class DamagedFileError(DataFileError):
    """The data file has lost writes, or a row was changed. Nothing in it was touched."""

    def __init__(self, path: Path, what: str, otherwise: str = "") -> None:
        super().__init__(f"{path} is damaged: {what}; go back to a backup with `podling restore`{otherwise}")


def fault(path: Path, error: sqlite3.Error) -> DataFileError:
    """SQLite's error about a file, as a message for the user."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _OF_THE_MOMENT:
        return DataFileError(f"cannot open {path}: {error}")
    return DamagedFileError(path, str(error))


def check(connection: sqlite3.Connection, path: Path, acknowledged: int) -> None:
    """Check rows and structure; `acknowledged` is the newest acknowledged revision. Raises DamagedFileError,
    sqlite3.Error."""
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


def checksum(revision: int, key: str, previous: int, value: bytes | None) -> int:
    """CRC-32 of the whole row."""
    found = zlib.crc32(f"{revision} {previous} {'-' if value is None else '+'} {key} ".encode())
    if value is None:
        return found
    if len(value) <= _PIECE:
        return zlib.crc32(value, found)
    view = memoryview(value)
    for start in range(0, len(value), _PIECE):
        found = zlib.crc32(view[start : start + _PIECE], found)
    return found
