"""The log of revisions as a table: what is appended, read back, compacted. Runs on the worker's thread only.

The row id is the revision. The store numbers it, one above the newest of the log and of the compaction, so a
revision is not used again even when its row is gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from podling.storage.interface import CompactedError, Event, Record
from podling.storage.sqlite.checksum import checksum
from podling.storage.sqlite.file import open_file

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


class State(NamedTuple):
    """What a log says when it is opened."""

    records: dict[str, Record]
    revision: int
    compacted: int


class Log:
    def __init__(self, path: Path) -> None:
        """Raises DataFileError."""
        self._file = open_file(path)
        self._connection = self._file.connection

    def load(self) -> State:
        records: dict[str, Record] = {}
        newest, compacted = 0, self._compacted()
        for newest, key, value in self._connection.execute(
            "SELECT revision, key, value FROM log ORDER BY revision"
        ):
            if value is None:
                records.pop(key, None)
            else:
                records[key] = Record(key, value, newest)
        revision = max(newest, compacted)
        # What a kill kept from being noted is public from now on.
        self._file.newest.note(revision)
        return State(records, revision, compacted)

    def append(self, events: Sequence[Event]) -> None:
        """All of them or none, durable on return.

        One statement, because SQLite's module gives up the interpreter lock for each: with a busy event loop
        every statement more costs the loop's turn, five milliseconds at worst.
        """
        if not events:
            return
        values: list[object] = []
        for revision, key, value, replaced in events:
            previous = replaced.revision if replaced else 0
            values += revision, key, previous, checksum(revision, key, previous, value), value
        self._connection.execute(_insert(len(events)), values)
        self._file.newest.note(events[-1].revision)

    def history(self, prefix: str, after: int, upto: int) -> Sequence[Event]:
        if after < (compacted := self._compacted()):
            raise CompactedError(compacted)
        rows = self._connection.execute(_HISTORY, {"prefix": prefix, "after": after, "upto": upto})
        return [
            Event(revision, key, value, Record(key, replaced, previous) if previous else None)
            for revision, key, value, previous, replaced in rows
        ]

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
        """Go on above `revision`: nothing below can be asked for. All there is has been compacted."""
        self._connection.execute("UPDATE compacted SET revision = ?", (revision,))
        self._file.newest.note(revision)

    def probe(self) -> None:
        """Raises sqlite3.Error when the file cannot be read."""
        self._compacted()

    def close(self) -> None:
        self._file.close()

    def _compacted(self) -> int:
        revision: int = self._connection.execute("SELECT revision FROM compacted").fetchone()[0]
        return revision


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO log VALUES {', '.join(['(?, ?, ?, ?, ?)'] * rows)}"


def is_passing(error: Exception) -> bool:
    """Whether a later write may succeed. After any other failure, of an fsync above all, nothing can be known
    about what reached the disk until the file is opened again."""
    primary_code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return primary_code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)
