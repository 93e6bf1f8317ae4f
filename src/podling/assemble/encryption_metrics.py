"""The metrics of encryption at rest, under Kubernetes' names."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

if TYPE_CHECKING:
    from podling.storage.kms.envelope import Kms

CONFIGURATION = "apiserver_encryption_config_controller_"
ENVELOPE = "apiserver_envelope_encryption_"
SUCCESS, FAILURE = "success", "failure"
OF_KEY = ["transformation_type", "provider_name", "key_id_hash"]


class Reloads(msgspec.Struct):
    """How often the configuration was taken or refused, and when for the last time, in seconds since the
    epoch; `hash` is that of what counts."""

    hash: str
    times: dict[str, int] = {}
    last: dict[str, float] = {}

    def count(self, outcome: str) -> None:
        self.times[outcome] = self.times.get(outcome, 0) + 1
        self.last[outcome] = time.time()


def encryption_metrics(reloads: Reloads, plugins: Sequence[Kms]) -> Iterable[Metric]:
    now = GaugeMetricFamily(
        f"{CONFIGURATION}last_config_info", "The hash of the configuration that counts.", labels=["hash"]
    )
    now.add_metric([reloads.hash], 1)
    yield now
    counted = CounterMetricFamily(
        f"{CONFIGURATION}automatic_reloads_total", "Changes of the configuration.", labels=["status"]
    )
    last = GaugeMetricFamily(
        f"{CONFIGURATION}automatic_reload_last_timestamp_seconds", "The last of them.", labels=["status"]
    )
    for outcome, times in reloads.times.items():
        counted.add_metric([outcome], times)
        last.add_metric([outcome], reloads.last[outcome])
    yield from (counted, last)
    yield from _plugin_metrics(plugins)


def _plugin_metrics(plugins: Sequence[Kms]) -> Iterable[Metric]:
    used = CounterMetricFamily(f"{ENVELOPE}key_id_hash_total", "Uses of a key.", labels=OF_KEY)
    last = GaugeMetricFamily(
        f"{ENVELOPE}key_id_hash_last_timestamp_seconds", "The last use of a key.", labels=OF_KEY
    )
    told = GaugeMetricFamily(
        f"{ENVELOPE}key_id_hash_status_last_timestamp_seconds",
        "When a plugin last named a key.",
        labels=OF_KEY[1:],
    )
    unnamed = CounterMetricFamily(
        f"{ENVELOPE}invalid_key_id_from_status_total",
        "How often a plugin named no key that can be.",
        labels=["provider_name", "error"],
    )
    seeds = GaugeMetricFamily(
        f"{ENVELOPE}dek_source_cache_size", "Seeds of keys that are known.", labels=["provider_name"]
    )
    latencies = HistogramMetricFamily(
        f"{ENVELOPE}kms_operations_latency_seconds",
        "Seconds of calls of plugins.",
        labels=["provider_name", "method_name", "grpc_status_code"],
    )
    for plugin in plugins:
        for (way, hashed), (times, when) in tuple(plugin.used.items()):
            used.add_metric([way, plugin.name, hashed], times)
            last.add_metric([way, plugin.name, hashed], when)
        for hashed, when in tuple(plugin.told.items()):
            told.add_metric([plugin.name, hashed], when)
        for error, times in tuple(plugin.unnamed.items()):
            unnamed.add_metric([plugin.name, error], times)
        seeds.add_metric([plugin.name], plugin.seeds)
        for (method, code), seen in tuple(plugin.plugin.latencies.items()):
            latencies.add_metric([plugin.name, method, code], seen.buckets(), seen.total)
    yield from (used, last, told, unnamed, seeds, latencies)
