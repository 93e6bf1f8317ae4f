"""Durations as Go writes them."""

from datetime import timedelta

import pytest

from podling.model.time import go_duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (12, "12ms"),
        (999, "999ms"),
        (1000, "1s"),
        (1500, "1.5s"),
        (62003, "1m2.003s"),
        (120000, "2m0s"),
        (3600000, "1h0m0s"),
        (3661001, "1h1m1.001s"),
    ],
)
def test_cut_to_milliseconds(milliseconds: int, text: str) -> None:
    assert go_duration(timedelta(milliseconds=milliseconds, microseconds=900)) == text
