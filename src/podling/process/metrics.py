"""Which feature gates are on, for whichever `/metrics` it serves, as Kubernetes' components say it.

What held the loop of this process, for whichever `/metrics` it serves.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.model.gates import GATES, Gates
from podling.process.watchdog import STALLS, Stalls


def stall_metrics(stalls: Stalls = STALLS) -> Iterable[Metric]:
    bounds = [*map(str, Stalls.BOUNDS), "+Inf"]
    yield HistogramMetricFamily(
        "podling_loop_stall_seconds",
        "Seconds for which something held the event loop, above a tenth of a second.",
        buckets=list(zip(bounds, accumulate(stalls.counts), strict=True)),
        sum_value=stalls.seconds,
    )


def gate_metrics(gates: Gates) -> Iterable[Metric]:
    """The stage of what is generally available is the empty string."""
    enabled = GaugeMetricFamily(
        "kubernetes_feature_enabled",
        "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
        labels=["name", "stage"],
    )
    for gate in GATES.values():
        stage = "" if gate.stage == "GA" else gate.stage
        enabled.add_metric([gate.name, stage], gates.enabled(gate.name))
    yield enabled
