"""Metrics of network policies. What is counted is plain numbers until somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.network.metrics import FAMILY, SYNC_BOUNDS
from podling.process.histogram import Histogram

PREFIX = "podling_network_policy_"


class CountedPolicies:
    """`dropped` are packets, by address family and direction."""

    def __init__(self, families: Iterable[str]) -> None:
        self.changes = Histogram(SYNC_BOUNDS)
        """Seconds of each."""
        self.failures = 0
        self.dropped: dict[str, Mapping[str, int]] = {family: {} for family in families}


def policy_metrics(counted: CountedPolicies, policies: int, waiting: int) -> Iterable[Metric]:
    yield GaugeMetricFamily(f"{PREFIX}policies", "Network policies that are enforced.", policies)
    yield GaugeMetricFamily(f"{PREFIX}waiting_pods", "Pods whose containers wait for them.", waiting)
    yield HistogramMetricFamily(
        f"{PREFIX}sync_duration_seconds",
        "Seconds of each change of the kernel's tables.",
        counted.changes.buckets(),
        counted.changes.total,
    )
    failures = CounterMetricFamily(f"{PREFIX}sync_failures", "Changes that nftables refused.")
    failures.add_metric([], counted.failures)
    yield failures
    packets = CounterMetricFamily(
        f"{PREFIX}dropped_packets", "Packets that policies refused.", labels=[FAMILY, "direction"]
    )
    for family, of_family in counted.dropped.items():
        for direction, number in of_family.items():
            packets.add_metric([family, direction], number)
    yield packets
