"""Which rows the log keeps, and what it reads back from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.storage.interface import CompactedError, Event, Record
from podling.storage.sqlite.log import Log, State, is_passing

A1 = Event(1, "/a", b"a1", None)
B2 = Event(2, "/b", b"b2", None)
A3 = Event(3, "/a", b"a3", Record("/a", b"a1", 1))
B4 = Event(4, "/b", None, Record("/b", b"b2", 2))
A5 = Event(5, "/a", b"a5", Record("/a", b"a3", 3))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "podling.db")
    log.append([A1, B2, A3, B4, A5])
    yield log
    log.close()


def _rows(log: Log) -> list[int]:
    return [row[0] for row in log._connection.execute("SELECT revision FROM log ORDER BY revision")]


def test_it_loads_the_newest_value_of_every_key(log: Log) -> None:
    assert log.load() == State({"/a": Record("/a", b"a5", 5)}, revision=5, compacted=0)


def test_history_ends_where_it_is_told(log: Log) -> None:
    """Rows that are durable but not yet public are not told of."""
    assert log.history("", 1, 4) == [B2, A3, B4]
    assert log.history("/a", 0, 9) == [A1, A3, A5]


@pytest.mark.parametrize(
    ("upto", "left"),
    [(1, [1, 2, 3, 4, 5]), (2, [1, 2, 3, 4, 5]), (3, [2, 3, 4, 5]), (4, [3, 5]), (5, [5])],
)
def test_compaction_keeps_newest_values_and_what_later_events_replaced(
    log: Log, upto: int, left: list[int]
) -> None:
    events = log.history("", upto, 5)
    log.compact(upto)
    assert _rows(log) == left
    assert log.history("", upto, 5) == events
    with pytest.raises(CompactedError):
        log.history("", upto - 1, 5)


def test_compaction_in_steps_ends_where_one_compaction_does(log: Log) -> None:
    for upto in range(6):
        log.compact(upto)
    assert _rows(log) == [5]


def test_the_revision_of_a_compacted_deletion_is_not_forgotten(log: Log) -> None:
    log.append([Event(6, "/a", None, Record("/a", b"a5", 5))])
    log.compact(6)
    assert _rows(log) == []
    assert log.load() == State({}, revision=6, compacted=6)


def test_nor_is_it_when_older_values_are_left(log: Log) -> None:
    log.append([Event(6, "/b", b"", None), Event(7, "/b", None, Record("/b", b"", 6))])
    log.compact(7)
    assert _rows(log) == [5]
    assert log.load().revision == 7


def test_a_group_is_appended_as_a_whole_or_not_at_all(log: Log) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        log.append([Event(6, "/c", b"", None), Event(5, "/d", b"", None)])
    assert _rows(log) == [1, 2, 3, 4, 5]


def test_a_full_disk_passes_and_nothing_else_does(log: Log) -> None:
    log._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.OperationalError) as full:
        log.append([Event(6, "/c", bytes(100_000), None)])
    assert is_passing(full.value)
    log._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.OperationalError) as read_only:
        log.append([Event(6, "/c", b"", None)])
    assert not is_passing(read_only.value)
    assert not is_passing(ValueError("not of SQLite"))
