"""Ages as the columns of `kubectl get` show them (R-SYS-1)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podling.apiserver.kinds.columns import age
from podling.model.time import human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (3 * MINUTE + 20, "3m20s"),
        (10 * MINUTE + 20, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 5 * HOUR, "2d5h"),
        (9 * DAY + 5 * HOUR, "9d"),
        (729 * DAY, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 4 * DAY, "3y4d"),
        (9 * YEAR + 4 * DAY, "9y"),
    ],
)
def test_human_duration(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_age_of_a_timestamp() -> None:
    now = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert age("2026-01-01T00:00:00Z", now) == "30s"
    assert age("2026-01-01T00:00:00.500000Z", now) == "29s"
    assert age("", now) == "<unknown>"
