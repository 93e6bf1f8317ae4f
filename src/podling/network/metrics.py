"""Metrics of the service proxy, under kube-proxy's names. What is counted is plain numbers until somebody
asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.process.histogram import Histogram

SYNC_BOUNDS = tuple(0.001 * 2**power for power in range(15))
PROGRAMMING_BOUNDS = (0.25, 0.5, *range(1, 60), *range(60, 120, 5), *range(120, 301, 30))
FAMILY = "ip_family"
POLICIES = ("external", "internal")
PATHS = {"/healthz": "kubeproxy_proxy_healthz", "/livez": "kubeproxy_proxy_livez"}


class OfFamily:
    """What is counted of one address family, in seconds."""

    def __init__(self) -> None:
        self.full, self.partial = Histogram(SYNC_BOUNDS), Histogram(SYNC_BOUNDS)
        self.all = Histogram(SYNC_BOUNDS)
        self.programming = Histogram(PROGRAMMING_BOUNDS)
        """From what happened to a pod, as its slice says, to what the kernel does."""
        self.queued = self.synced = 0.0
        self.failures = 0

    def add(self, seconds: float, now: float, *, is_whole: bool) -> None:
        """A change that is made."""
        self.all.observe(seconds)
        (self.full if is_whole else self.partial).observe(seconds)
        self.synced = now


class Counted:
    """What the proxy counts."""

    def __init__(self, families: Iterable[str]) -> None:
        self.of: Mapping[str, OfFamily] = {family: OfFamily() for family in families}
        self.service_changes = self.slice_changes = 0
        self.pending_services = self.pending_slices = 0


def metrics(
    counted: Counted, without: Mapping[str, Mapping[str, int]], answers: Mapping[tuple[str, int], int]
) -> Iterable[Metric]:
    """`without`: by family and traffic policy, the services of policy `Local` that have endpoints, but none
    here. `answers` are those of the health paths, by path and code."""
    prefix = "kubeproxy_sync_proxy_rules_"
    for name, text, kind in (
        (f"{prefix}duration_seconds", "Seconds of each change of the kernel's tables.", "all"),
        ("kubeproxy_sync_full_proxy_rules_duration_seconds", "Seconds of those of whole tables.", "full"),
        ("kubeproxy_sync_partial_proxy_rules_duration_seconds", "Seconds of those of parts.", "partial"),
        (
            "kubeproxy_network_programming_duration_seconds",
            "Seconds from what happened to a pod to the tables.",
            "programming",
        ),
    ):
        found = HistogramMetricFamily(name, text, labels=[FAMILY])
        for family, of in counted.of.items():
            histogram: Histogram = getattr(of, kind)
            if sum(histogram.counts):
                found.add_metric([family], histogram.buckets(), histogram.total)
        yield found
    for name, text, kind in (
        ("last_queued_timestamp_seconds", "When something last was to be changed.", "queued"),
        ("last_timestamp_seconds", "When the tables last were as they should be.", "synced"),
    ):
        gauge = GaugeMetricFamily(prefix + name, text, labels=[FAMILY])
        for family, of in counted.of.items():
            gauge.add_metric([family], getattr(of, kind))
        yield gauge
    failures = CounterMetricFamily(
        f"{prefix}nftables_sync_failures", "Changes that nftables refused.", labels=[FAMILY]
    )
    for family, of in counted.of.items():
        failures.add_metric([family], of.failures)
    yield failures
    for what, changes, pending in (
        ("service", counted.service_changes, counted.pending_services),
        ("endpoint", counted.slice_changes, counted.pending_slices),
    ):
        total = CounterMetricFamily(f"{prefix}{what}_changes", f"Changes seen of {what}s.")
        total.add_metric([], changes)
        gauge = GaugeMetricFamily(f"{prefix}{what}_changes_pending", f"Those of {what}s still to be made.")
        gauge.add_metric([], pending)
        yield from (total, gauge)
    gauge = GaugeMetricFamily(
        f"{prefix}no_local_endpoints_total",
        "Services that lead to a node's own endpoints alone, and have none here.",
        labels=[FAMILY, "traffic_policy"],
    )
    for family in counted.of:
        for policy in POLICIES:
            gauge.add_metric([family, policy], without.get(family, {}).get(policy, 0))
    yield gauge
    for path, name in PATHS.items():
        total = CounterMetricFamily(name, f"Answers of {path} by code.", labels=["code"])
        for (asked, code), count in answers.items():
            if asked == path:
                total.add_metric([str(code)], count)
        yield total
