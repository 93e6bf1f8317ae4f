"""R-SYS-1: schedules of CronJobs. `tests/peer/test_batch.py` compares the words with Kubernetes'."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.rules.schedule import (
    FIELDS,
    NAMED,
    CronField,
    go_nanoseconds,
    read_schedule,
    schedule_fault,
    zone_fault,
)


@st.composite
def written(draw: st.DrawFn, within: CronField) -> str:
    """A field that cron takes: a list of `*`, values, names and ranges, some with a step."""

    def part() -> str:
        low, high = sorted(draw(st.lists(st.integers(within.least, within.most), min_size=2, max_size=2)))
        span = draw(st.sampled_from(["*", "?", str(low), f"{low}-{high}", *within.names]))
        step = draw(st.none() | st.integers(1, 99))
        return span if step is None else f"{span}/{step}"

    return ",".join(part() for _ in range(draw(st.integers(1, 3))))


SCHEDULES = st.tuples(*map(written, FIELDS)).map(" ".join) | st.sampled_from(sorted(NAMED))


@given(SCHEDULES)
def test_what_cron_takes(schedule: str) -> None:
    assert schedule_fault(schedule) == ""
    assert schedule_fault(f"TZ=Europe/Berlin {schedule}") == ""


@given(st.text(alphabet="0159*/-,?@ aTZ=junmonevrys.µ\n", max_size=40))
def test_whatever_is_written_is_judged(text: str) -> None:
    assert isinstance(schedule_fault(text), str)


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ("@every 1h30m", ""),
        ("@every -1.5h", ""),
        ("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("@every 5x", 'failed to parse duration @every 5x: time: unknown unit "x" in duration "5x"'),
        ("@every h", 'failed to parse duration @every h: time: invalid duration "h"'),
        ("@often", "unrecognized descriptor: @often"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        (
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
        ),
        ("TZ=", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Mars/Base @daily", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_in_the_words_of_kubernetes(schedule: str, fault: str) -> None:
    assert schedule_fault(schedule) == fault


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", ""),
        ("Asia/Tokyo", ""),
        ("Nowhere", "unknown time zone Nowhere"),
        ("../x", "unknown time zone ../x"),
    ],
)
def test_time_zones(name: str, fault: str) -> None:
    assert zone_fault(name) == fault


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


@pytest.mark.parametrize(
    ("schedule", "begin", "following"),
    [
        ("* * * * *", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"),
        ("* * * * *", "2026-01-02T03:05:00Z", "2026-01-02T03:06:00Z"),
        ("*/20 6-16/4 * * *", "2026-01-02T14:41:00Z", "2026-01-03T06:00:00Z"),
        ("0 0 29 feb ?", "2026-01-02T00:00:00Z", "2028-02-29T00:00:00Z"),
        # Either of both days, unless one of them is any.
        ("0 0 13 * fri", "2026-01-02T12:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 13 * *", "2026-01-02T12:00:00Z", "2026-01-13T00:00:00Z"),
        ("0 0 */1 * fri", "2026-01-02T12:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 */2 * fri", "2026-01-02T12:00:00Z", "2026-01-03T00:00:00Z"),
        ("@weekly", "2026-01-02T12:00:00Z", "2026-01-04T00:00:00Z"),
        ("@every 1h30m1.7s", "2026-01-02T12:00:00Z", "2026-01-02T13:30:01Z"),
        ("@every -5m", "2026-01-02T12:00:00Z", "2026-01-02T12:00:01Z"),
        # An hour that is left out in spring, and one that comes twice in autumn.
        ("TZ=America/New_York 30 2 11 mar ?", "2012-03-11T00:00:00-05:00", "2013-03-11T02:30:00-04:00"),
        ("TZ=America/New_York 0 * * * *", "2012-03-11T01:00:00-05:00", "2012-03-11T03:00:00-04:00"),
        ("TZ=America/New_York 0 2 * * *", "2012-03-11T00:00:00-05:00", "2012-03-12T02:00:00-04:00"),
        ("TZ=America/New_York 0 1 * * *", "2012-11-04T00:00:00-04:00", "2012-11-04T01:00:00-04:00"),
        ("TZ=America/New_York 0 1 * * *", "2012-11-04T01:00:00-04:00", "2012-11-04T01:00:00-05:00"),
        ("TZ=America/New_York 0 2 * * *", "2012-11-04T00:00:00-04:00", "2012-11-04T02:00:00-05:00"),
        # Where midnight is left out.
        ("TZ=America/Sao_Paulo 0 0 * * *", "2018-11-02T12:00:00-03:00", "2018-11-03T00:00:00-03:00"),
        ("TZ=America/Sao_Paulo 0 9 4 nov ?", "2018-10-02T12:00:00-03:00", "2018-11-04T09:00:00-02:00"),
    ],
)  # fmt: skip
def test_the_next_time(schedule: str, begin: str, following: str) -> None:
    assert read_schedule(schedule).next_after(at(begin)) == at(following)


@pytest.mark.parametrize("schedule", ["0 0 31 2 *", ", * * * *", "* , * * *", "* * , * ,", "* * * , *"])
def test_a_time_that_never_comes(schedule: str) -> None:
    assert read_schedule(schedule).next_after(at("2026-01-02T03:04:05Z")) is None


@given(SCHEDULES, st.integers(at("2020-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z")))
def test_every_time_is_one_that_the_schedule_names(text: str, begin: int) -> None:
    schedule = read_schedule(f"TZ=UTC {text}")
    following = schedule.next_after(begin)
    if following is None:
        return
    assert begin < following and following % 60 == 0
    time = datetime.fromtimestamp(following, UTC)
    assert time.minute in schedule.minutes and time.hour in schedule.hours and time.month in schedule.months
    # None is left out: any time between has the same next one.
    between = (begin + following) // 2
    assert schedule.next_after(min(between, following - 1)) == following


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("1h", 3600 * 10**9), ("1.5s", 1500 * 10**6), ("-.5us", -500), ("0", 0), ("+1ns2ms", 2000001)],
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert go_nanoseconds(text) == nanoseconds
