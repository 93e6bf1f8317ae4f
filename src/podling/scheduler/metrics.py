"""The scheduler's work in numbers, under the names of Kubernetes' metrics. Counting is adding; names and
labels are for whoever asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.process.histogram import Histogram
from podling.scheduler.queue import ACTIVE, BACKING_OFF, PARKED

BOUND, REFUSED, FAILED = "scheduled", "unschedulable", "error"
"""Results of a scheduling attempt."""
SECONDS = tuple(0.001 * 2**i for i in range(15))
VICTIMS = tuple(2**i for i in range(7))
"""Upper bounds, those of Kubernetes."""
QUEUES = {ACTIVE: "active", BACKING_OFF: "backoff", PARKED: "unschedulable"}
GATED = "gated"


class Attempts(msgspec.Struct):
    """`preemptions` counts the times somebody was looked for who could make room."""

    results: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: dict[str, Histogram] = msgspec.field(default_factory=dict)
    preemptions: int = 0
    victims: Histogram = msgspec.field(default_factory=lambda: Histogram(VICTIMS))

    def ended(self, result: str, seconds: float) -> None:
        self.results[result] += 1
        self.seconds.setdefault(result, Histogram(SECONDS)).observe(seconds)


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
        seconds.add_metric([result, profile], taken.buckets(), taken.total)
    pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait, by queue.", labels=["queue"])
    for place, queue in QUEUES.items():
        pending.add_metric([queue], places.get(place, 0))
    pending.add_metric([GATED], gated)
    victims = HistogramMetricFamily("scheduler_preemption_victims", "Pods that had to go for one other.")
    victims.add_metric([], attempts.victims.buckets(), attempts.victims.total)
    preemptions = CounterMetricFamily(
        "scheduler_preemption_attempts_total", "Attempts to make room.", attempts.preemptions
    )
    return total, seconds, pending, victims, preemptions
