"""Copying the data file while a podling writes to it, and making a copy the data file of a new store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from podling.storage.sqlite.log import FORMAT, Log, format_of, newest_path, reading
from podling.storage.sqlite.newest import Newest
from podling.storage.sqlite.whole import DamagedFileError, DataFileError, check

LEAP = 1_000_000_000
"""Revisions skipped by a store made from a copy: more than can have been written since the copy was made.
Like etcd's `--bump-revision` with `--mark-compacted`: clients that know newer revisions are told to list
again.
"""

_OBJECTS = """
SELECT count(*) FROM (SELECT value, max(revision) FROM log GROUP BY key) WHERE value IS NOT NULL
"""


class Copied(NamedTuple):
    revision: int
    objects: int


def copy(path: Path, target: Path, *, accept_loss: bool = False) -> Copied:
    """Copy the data file to `target`, with every write that was acknowledged when the copy began. With
    `accept_loss` a file that has lost its newest writes is copied too, unless a row was changed. Raises
    DataFileError."""
    acknowledged = 0 if accept_loss else _acknowledged(path)
    with reading(path) as source:
        if format_of(source, path) != FORMAT:
            raise DataFileError(f"{path} was written by an older podling: start it once with this one")
        with closing(sqlite3.connect(target)) as copied:
            source.backup(copied)
    return look(target, acknowledged)


def look(path: Path, acknowledged: int = 0) -> Copied:
    """Revision and number of objects of a copy, after checking that it is undamaged. Raises DataFileError."""
    with reading(path) as connection:
        if format_of(connection, path) != FORMAT:
            raise DataFileError(f"{path} is not of data format {FORMAT}")
        check(connection, path, acknowledged)
        objects = connection.execute(_OBJECTS).fetchone()[0]
        revision = connection.execute(
            "SELECT max(revision) FROM (SELECT revision FROM log UNION SELECT revision FROM compacted)"
        ).fetchone()[0]
        return Copied(revision, objects)


def go_on(path: Path, above: int) -> int:
    """Turn a copy into the data file of a store that continues from it. Returns its new revision, which is
    above `above`."""
    Newest.make(newest_path(path)).close()
    log = Log(path)
    try:
        reached = log.revision()
        revision = max(reached, above) + LEAP
        log.compact(reached)
        log.leap(revision)
    finally:
        log.close()
    return revision


def newest_acknowledged(path: Path) -> int:
    """The newest revision that was acknowledged at `path`; 0 when it is not known."""
    try:
        return _acknowledged(path)
    except DataFileError:
        return 0


def _acknowledged(path: Path) -> int:
    try:
        newest = Newest(newest_path(path))
    except FileNotFoundError as error:
        raise DataFileError(f"{newest_path(path)} is missing") from error
    except ValueError as error:
        raise DamagedFileError(newest_path(path), str(error)) from error
    with closing(newest):
        return newest.revision
