"""R-SYS-1: schedules of CronJobs. `tests/peer/test_batch.py` compares the words with Kubernetes'."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.rules.schedule import FIELDS, NAMED, CronField, schedule_fault, zone_fault


@st.composite
def written(draw: st.DrawFn, within: CronField) -> str:
    """A field that cron takes: a list of `*`, values, names and ranges, some with a step."""

    def part() -> str:
        low, high = sorted(draw(st.lists(st.integers(within.least, within.most), min_size=2, max_size=2)))
        span = draw(st.sampled_from(["*", "?", str(low), f"{low}-{high}", *within.names]))
        step = draw(st.none() | st.integers(1, 99))
        return span if step is None else f"{span}/{step}"

    return ",".join(part() for _ in range(draw(st.integers(1, 3))))


SCHEDULES = st.tuples(*map(written, FIELDS)).map(" ".join) | st.sampled_from(NAMED)


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
