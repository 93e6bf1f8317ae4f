"""What is counted of webhooks, under Kubernetes' names. The label sets are as many as there are webhooks,
which only an administrator makes; of those beyond MOST_SERIES nothing is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, UnknownMetricFamily
from prometheus_client.metrics_core import Metric

from podling.process.histogram import Histogram

PREFIX = "apiserver_admission_webhook_"
BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25)
MOST_SERIES = 2000
LARGEST_CODE = 600
"""Codes from there on are one, as in Kubernetes."""

Labels = tuple[str, ...]


class WebhookMetrics:
    def __init__(self) -> None:
        self._seconds: dict[Labels, Histogram] = {}
        self._requests: Counter[Labels] = Counter()
        self._rejections: Counter[Labels] = Counter()
        self._opened: Counter[Labels] = Counter()

    def asked(
        self, name: str, sort: str, operation: str, code: int, rejected: bool, why: str, seconds: float
    ) -> None:
        """`sort`: admit or validating; `why`: the kind of error if it was rejected."""
        said, code_said = str(rejected).lower(), str(min(code, LARGEST_CODE))
        labels = (name, sort, operation, said)
        if labels not in self._seconds and len(self._seconds) >= MOST_SERIES:
            return
        self._seconds.setdefault(labels, Histogram(BUCKETS)).observe(seconds)
        self._requests[name, sort, operation, code_said, said] += 1
        if rejected:
            self._rejections[name, sort, operation, why, code_said if why == "no_error" else "0"] += 1

    def opened(self, name: str, sort: str) -> None:
        """The webhook failed and the write went on."""
        self._opened[name, sort] += 1

    def metrics(self) -> Iterator[Metric]:
        seconds = HistogramMetricFamily(
            f"{PREFIX}admission_duration_seconds",
            "Seconds until a webhook had answered.",
            labels=["name", "type", "operation", "rejected"],
        )
        for labels, histogram in self._seconds.items():
            seconds.add_metric(labels, histogram.buckets(), histogram.total)
        yield seconds
        total = CounterMetricFamily(
            f"{PREFIX}request_total",
            "Requests to webhooks.",
            labels=["name", "type", "operation", "code", "rejected"],
        )
        # Counters whose names do not say so, which the library would change.
        rejections = UnknownMetricFamily(
            f"{PREFIX}rejection_count",
            "Writes that were refused because of a webhook.",
            labels=["name", "type", "operation", "error_type", "rejection_code"],
        )
        opened = UnknownMetricFamily(
            f"{PREFIX}fail_open_count",
            "Writes that went on though a webhook failed.",
            labels=["name", "type"],
        )
        for family, counts in (
            (total, self._requests),
            (rejections, self._rejections),
            (opened, self._opened),
        ):
            for labels, count in counts.items():
                family.add_metric(labels, count)
            yield family
