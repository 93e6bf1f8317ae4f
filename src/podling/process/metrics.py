"""`/metrics` of every part: Prometheus' text format, and the metrics that every part has of its process.

Those are the stalls of its event loop, its feature gates, and what the Prometheus client reads in /proc.
Parts count in plain numbers (`Counter`, `Histogram`) and give a `Source`, which names them at each scrape.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from podling.model.gates import GATES, Gates
from podling.process.watchdog import STALLS, Stalls

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `Exposition.text`."""

Source = Callable[[], Iterable[Metric]]
"""Asked for its metrics at each scrape."""


class Exposition:
    """The sources of one page of metrics."""

    def __init__(self, sources: Sequence[Source] = (), *, process: bool = False) -> None:
        """`process` puts this process's own metrics before those of the sources."""
        self._registry = CollectorRegistry(auto_describe=False)
        if process:
            # pid 1 of a container counts as any other; the collector reads /proc/PID.
            ProcessCollector(pid=os.getpid, registry=self._registry)
            self.add(stall_metrics)
        for source in sources:
            self.add(source)

    def add(self, source: Source) -> None:
        self._registry.register(_FromSource(source))

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _FromSource(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        return self._source()


def stall_metrics(stalls: Stalls = STALLS) -> Iterable[Metric]:
    """How often and for how long the event loop was held."""
    yield HistogramMetricFamily(
        "podling_loop_stall_seconds",
        "Seconds for which something held the event loop, above a tenth of a second.",
        buckets=stalls.buckets(),
        sum_value=stalls.total,
    )


def gate_metrics(gates: Gates) -> Iterable[Metric]:
    """`kubernetes_feature_enabled`; the stage of a generally available gate is the empty string, as in
    Kubernetes."""
    enabled = GaugeMetricFamily(
        "kubernetes_feature_enabled",
        "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
        labels=["name", "stage"],
    )
    for gate in GATES.values():
        stage = "" if gate.stage == "GA" else gate.stage
        enabled.add_metric([gate.name, stage], gates.enabled(gate.name))
    yield enabled
