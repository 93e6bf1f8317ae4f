"""The metrics of priority and fairness, under Kubernetes' names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.apiserver.fairness.fairness import Fairness, Schema, Work
from podling.process.histogram import Histogram

PREFIX = "apiserver_flowcontrol_"
OF_SCHEMA = ["priority_level", "flow_schema"]
NOW: Sequence[tuple[str, str, Callable[[Schema], int]]] = (
    ("current_executing_requests", "Requests being answered.", lambda one: len(one.executing)),
    ("current_executing_seats", "Seats of requests being answered.", lambda one: _seats(one.executing)),
    ("current_inqueue_requests", "Requests that wait in a queue.", lambda one: len(one.waiting)),
    ("current_inqueue_seats", "Seats that requests in queues wait for.", lambda one: _seats(one.waiting)),
)
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 100)
SEATS = (
    ("current_limit_seats", "nominal", "Seats of a level's own: what it borrows comes and goes."),
    ("nominal_limit_seats", "nominal", "Seats of a level's own."),
    ("lower_limit_seats", "lower", "Seats that a level never lends."),
    ("upper_limit_seats", "upper", "Seats of a level with all that it may borrow."),
)


def fairness_metrics(fairness: Fairness) -> Iterable[Metric]:
    for name, text, value in NOW:
        gauge = GaugeMetricFamily(PREFIX + name, text, labels=OF_SCHEMA)
        for one in fairness.counts:
            gauge.add_metric([one.level, one.name], value(one))
        yield gauge
    for name, attribute, text in SEATS:
        gauge = GaugeMetricFamily(PREFIX + name, text, labels=["priority_level"])
        for level in fairness.levels.values():
            gauge.add_metric([level.name], getattr(level.limits, attribute))
        yield gauge
    dispatched = CounterMetricFamily(
        f"{PREFIX}dispatched_requests_total", "Requests let in.", labels=OF_SCHEMA
    )
    rejected = CounterMetricFamily(
        f"{PREFIX}rejected_requests_total", "Requests refused.", labels=[*OF_SCHEMA, "reason"]
    )
    executed = HistogramMetricFamily(
        f"{PREFIX}request_execution_seconds", "Seconds of being answered.", labels=[*OF_SCHEMA, "type"]
    )
    waited = HistogramMetricFamily(
        f"{PREFIX}request_wait_duration_seconds", "Seconds in a queue.", labels=[*OF_SCHEMA, "execute"]
    )
    for one in fairness.counts:
        labels = [one.level, one.name]
        dispatched.add_metric(labels, one.dispatched)
        for reason, count in one.rejected.items():
            rejected.add_metric([*labels, reason], count)
        if one.dispatched:
            executed.add_metric([*labels, "regular"], one.executed.buckets(), one.executed.total)
        for execute, seconds in (("true", one.waited), ("false", one.refused)):
            if any(seconds.counts):
                waited.add_metric([*labels, execute], seconds.buckets(), seconds.total)
    yield from (dispatched, rejected, executed, waited)
    yield _widths(fairness)


def _seats(works: Iterable[Work]) -> int:
    return sum(one.width for one in works)


def _widths(fairness: Fairness) -> Metric:
    widths = HistogramMetricFamily(
        f"{PREFIX}work_estimated_seats", "Seats that requests are wide.", labels=OF_SCHEMA
    )
    for one in fairness.counts:
        histogram = Histogram(WIDTHS)
        for width, count in one.widths.items():
            histogram.counts[bisect_left(WIDTHS, width)] += count
            histogram.total += width * count
        widths.add_metric([one.level, one.name], histogram.buckets(), histogram.total)
    return widths
