"""What held the loop of this process, for whichever `/metrics` it serves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.watchdog import STALLS, Stalls


def stall_metrics(stalls: Stalls = STALLS) -> Iterable[Metric]:
    bounds = [*map(str, Stalls.BOUNDS), "+Inf"]
    yield HistogramMetricFamily(
        "podling_loop_stall_seconds",
        "Seconds for which something held the event loop, above a tenth of a second.",
        buckets=list(zip(bounds, accumulate(stalls.counts), strict=True)),
        sum_value=stalls.seconds,
    )
