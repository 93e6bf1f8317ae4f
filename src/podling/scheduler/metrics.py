"""The scheduler's work in numbers, under the names of Kubernetes' metrics. Counting is adding; names and
labels are for whoever asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.scheduler.queue import ACTIVE, BACKING_OFF, PARKED

BOUND, REFUSED, FAILED = "scheduled", "unschedulable", "error"
"""How an attempt may end."""
SECONDS = tuple(0.001 * 2**i for i in range(15))
VICTIMS = tuple(2**i for i in range(7))
"""Upper bounds, those of Kubernetes."""
QUEUES = {ACTIVE: "active", BACKING_OFF: "backoff", PARKED: "unschedulable"}
GATED = "gated"


class Distribution:
    def __init__(self, bounds: Iterable[float]) -> None:
        self._bounds = tuple(bounds)
        self._buckets = [0] * (len(self._bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self._buckets[bisect_left(self._bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        bounds = (*(str(float(bound)) for bound in self._bounds), "+Inf")
        return list(zip(bounds, accumulate(self._buckets), strict=True))


class Attempts(msgspec.Struct):
    """`preemptions` counts the times somebody was looked for who could make room."""

    results: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: dict[str, Distribution] = msgspec.field(default_factory=dict)
    preemptions: int = 0
    victims: Distribution = msgspec.field(default_factory=lambda: Distribution(VICTIMS))

    def ended(self, result: str, seconds: float) -> None:
        self.results[result] += 1
        self.seconds.setdefault(result, Distribution(SECONDS)).add(seconds)


def scheduler_metrics(
    profile: str, attempts: Attempts, places: Mapping[str, int], gated: int
) -> Iterable[Metric]:
    """`profile` is the name pods ask for their scheduler by."""
    total = CounterMetricFamily(
        "scheduler_schedule_attempts_total",
        "Attempts to schedule pods, by how they ended.",
        labels=["result", "profile"],
    )
    seconds = HistogramMetricFamily(
        "scheduler_scheduling_attempt_duration_seconds",
        "Seconds an attempt took, its binding included.",
        labels=["result", "profile"],
    )
    for result, count in attempts.results.items():
        total.add_metric([result, profile], count)
        taken = attempts.seconds[result]
        seconds.add_metric([result, profile], taken.cumulative(), taken.total)
    pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait, by queue.", labels=["queue"])
    for place, queue in QUEUES.items():
        pending.add_metric([queue], places.get(place, 0))
    pending.add_metric([GATED], gated)
    victims = HistogramMetricFamily("scheduler_preemption_victims", "Pods that had to go for one other.")
    victims.add_metric([], attempts.victims.cumulative(), attempts.victims.total)
    preemptions = CounterMetricFamily(
        "scheduler_preemption_attempts_total", "Attempts to make room.", attempts.preemptions
    )
    return total, seconds, pending, victims, preemptions
