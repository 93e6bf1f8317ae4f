from __future__ import annotations

from podling.process.histogram import Histogram


def test_a_bound_belongs_to_what_is_below_it() -> None:
    histogram = Histogram((1, 2))
    for value in (1, 1.5, 2, 3):
        histogram.observe(value)
    assert histogram.buckets() == [("1.0", 1), ("2.0", 3), ("+Inf", 4)]
