"""Which feature gates are on, for whichever `/metrics` it serves, as Kubernetes' components say it."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from podling.model.gates import GATES, Gates


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
