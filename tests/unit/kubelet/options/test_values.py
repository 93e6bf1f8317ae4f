"""Values of a kubelet's settings: what is understood, and how the rest is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from podling.kubelet.options.values import (
    amounts,
    duration,
    grace_periods,
    reclaimed,
    size,
    some_time,
    whole_number,
)

PERCENT = whole_number(0, 100)
NODEFS = "nodefs.available"

READ = [
    (PERCENT, "0", 0),
    (PERCENT, 100, 100),
    (whole_number(2), "1000", 1000),
    (duration, "1m30s", timedelta(seconds=90)),
    (duration, "0", timedelta()),
    (duration, "1.5h", timedelta(minutes=90)),
    (duration, "250ms", timedelta(milliseconds=250)),
    (some_time, "5s", timedelta(seconds=5)),
    (size, "10Mi", 10 << 20),
    (size, 4096, 4096),
    (amounts, "nodefs.available<10%,memory.available<1Gi", {NODEFS: "10%", "memory.available": "1Gi"}),
    (amounts, "", {}),
    (amounts, {NODEFS: "10%"}, {NODEFS: "10%"}),
    (reclaimed, "nodefs.available=500Mi", {NODEFS: "500Mi"}),
    (grace_periods, "nodefs.available=1m", {NODEFS: timedelta(minutes=1)}),
    (grace_periods, {NODEFS: "1m"}, {NODEFS: timedelta(minutes=1)}),
]

REFUSED = [
    (PERCENT, "101", "101 must be between 0 and 100, inclusive"),
    (PERCENT, -1, "-1 must be between 0 and 100, inclusive"),
    (PERCENT, "85%", "'85%' is not a whole number"),
    (PERCENT, True, "'True' is not a whole number"),
    (PERCENT, 8.5, "'8.5' is not a whole number"),
    (whole_number(2), "1", "1 must be at least 2"),
    (duration, "5", "'5' is not a duration, such as 1m30s"),
    (duration, "-5s", "'-5s' is not a duration, such as 1m30s"),
    (duration, None, "'None' is not a duration, such as 1m30s"),
    (some_time, "0s", "'0s' must be a positive duration"),
    (size, "big", "'big' is not a size, such as 10Mi"),
    (size, "0", "'0' must be more than nothing"),
    (amounts, "nodefs.available", "'nodefs.available' is not SIGNAL<AMOUNT,..."),
    (amounts, "nodefs.available<", "'nodefs.available<' is not SIGNAL<AMOUNT,..."),
    (amounts, "nodefs.available<lots", "'lots' is neither a quantity nor a percentage"),
    (amounts, "nodefs.available<-5%", "'-5%' is less than nothing"),
    (amounts, "disk<5%", "unknown eviction signal disk"),
    (amounts, ["nodefs.available"], "\"['nodefs.available']\" does not map signals to values"),
    (reclaimed, "nodefs.available<5%", "'nodefs.available<5%' is not SIGNAL=AMOUNT,..."),
    (grace_periods, "nodefs.available=soon", "'soon' is not a duration, such as 1m30s"),
    (grace_periods, "nodefs.available=0s", "'0s' must be a positive duration"),
]


@pytest.mark.parametrize(("read", "given", "expected"), READ)
def test_what_is_understood(read: Callable[[object], Any], given: object, expected: object) -> None:
    assert read(given) == expected


@pytest.mark.parametrize(("read", "given", "why"), REFUSED)
def test_what_is_refused(read: Callable[[object], Any], given: object, why: str) -> None:
    with pytest.raises(ValueError) as error:
        read(given)
    assert str(error.value) == why
