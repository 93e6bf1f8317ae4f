"""Time as the API writes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from podling.model.time import SystemClock, micro_time, moved, parse_optional, parse_time, rfc3339

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_time_has_whole_seconds_and_micro_time_six_digits() -> None:
    assert rfc3339(MOMENT) == "2026-01-02T03:04:05Z"
    assert micro_time(MOMENT) == "2026-01-02T03:04:05.000006Z"
    assert micro_time(MOMENT.replace(microsecond=0)) == "2026-01-02T03:04:05.000000Z"


def test_other_zones_become_utc() -> None:
    assert rfc3339(MOMENT.astimezone(timezone(timedelta(hours=2)))) == "2026-01-02T03:04:05Z"
    assert parse_time("2026-01-02T05:04:05.000006+02:00") == MOMENT


def test_reads_what_it_writes() -> None:
    assert parse_time(micro_time(MOMENT)) == MOMENT
    assert parse_time(rfc3339(MOMENT)) == MOMENT.replace(microsecond=0)


def test_nanoseconds_are_cut() -> None:
    assert parse_time("2026-01-02T03:04:05.000006789Z") == MOMENT


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z"]
)
def test_refuses_what_is_not_rfc_3339(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


def test_an_unset_time_is_none() -> None:
    assert parse_optional("") is None
    assert parse_optional(rfc3339(MOMENT)) is not None


def test_the_system_clock_is_aware() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_what_would_be_beyond_all_time_is_its_end() -> None:
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
    year = timedelta(days=365)
    assert moved(parse_time(first), -year) == parse_time(first)
    assert rfc3339(moved(parse_time(last), year)) == last
    assert moved(parse_time(first), year) == datetime(2, 1, 1, tzinfo=UTC)
