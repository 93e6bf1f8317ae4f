"""A copy of a data file, taken while a podling writes to it, and how a store goes on from one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from podling.storage.sqlite.log import FORMAT, Log, format_of, newest_path, reading
from podling.storage.sqlite.newest import Newest
from podling.storage.sqlite.whole import DamagedFileError, DataFileError, check

LEAP = 1_000_000_000
"""Revisions a store that goes on from a copy leaves out: more than were written since it was taken. As with
etcd's `--bump-revision` and `--mark-compacted`, clients that know newer ones are told to list again."""

_OBJECTS = """
SELECT count(*) FROM (SELECT value, max(revision) FROM log GROUP BY key) WHERE value IS NOT NULL
"""


class Copied(NamedTuple):
    revision: int
    objects: int


def copy(path: Path, target: Path, *, accept_loss: bool = False) -> Copied:
    """All that had been acknowledged when the copy began is in it, unchanged; to `accept_loss` it is enough
    that what is there was not changed. Raises DataFileError."""
    acknowledged = 0 if accept_loss else _acknowledged(path)
    with reading(path) as source:
        if format_of(source, path) != FORMAT:
            raise DataFileError(f"{path} was written by an older podling: start it once with this one")
        with closing(sqlite3.connect(target)) as copied:
            source.backup(copied)
    return look(target, acknowledged)


def look(path: Path, acknowledged: int = 0) -> Copied:
    """What a copy holds, which is whole. Raises DataFileError."""
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
    """Make a copy the data file of a store that goes on from there; its revision, which is above `above`."""
    Newest.make(newest_path(path)).close()
    log = Log(path)
    try:
        state = log.load()
        revision = max(state.revision, above) + LEAP
        log.compact(state.revision)
        log.leap(revision)
    finally:
        log.close()
    return revision


def newest_acknowledged(path: Path) -> int:
    """0 where nobody can say."""
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
