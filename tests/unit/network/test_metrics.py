"""The proxy's metrics have the names and labels of kube-proxy 1.36 in its nftables mode."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric

from podling.network.metrics import Counted, metrics

NAMES = {
    "kubeproxy_network_programming_duration_seconds": ["ip_family"],
    "kubeproxy_proxy_healthz_total": ["code"],
    "kubeproxy_proxy_livez_total": ["code"],
    "kubeproxy_sync_full_proxy_rules_duration_seconds": ["ip_family"],
    "kubeproxy_sync_partial_proxy_rules_duration_seconds": ["ip_family"],
    "kubeproxy_sync_proxy_rules_duration_seconds": ["ip_family"],
    "kubeproxy_sync_proxy_rules_endpoint_changes_pending": [],
    "kubeproxy_sync_proxy_rules_endpoint_changes_total": [],
    "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds": ["ip_family"],
    "kubeproxy_sync_proxy_rules_last_timestamp_seconds": ["ip_family"],
    "kubeproxy_sync_proxy_rules_nftables_sync_failures_total": ["ip_family"],
    "kubeproxy_sync_proxy_rules_no_local_endpoints_total": ["ip_family", "traffic_policy"],
    "kubeproxy_sync_proxy_rules_service_changes_pending": [],
    "kubeproxy_sync_proxy_rules_service_changes_total": [],
}


def full_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def test_names_and_labels() -> None:
    counted = Counted(["IPv4"])
    of = counted.of["IPv4"]
    of.add(0.003, 1.0, is_whole=True)
    of.add(0.0005, 2.0, is_whole=False)
    of.programming.observe(0.3)
    found = list(metrics(counted, {"IPv4": {"external": 2}}, {("/healthz", 200): 1, ("/livez", 503): 1}))
    labels = {full_name(one): sorted(one.samples[0].labels.keys() - {"le"}) for one in found}
    assert labels == NAMES
    values = {(one.name, *one.labels.values()): one.value for family in found for one in family.samples}
    assert values["kubeproxy_sync_proxy_rules_duration_seconds_bucket", "IPv4", "0.001"] == 1
    assert values["kubeproxy_sync_proxy_rules_duration_seconds_count", "IPv4"] == 2
    assert values["kubeproxy_sync_proxy_rules_last_timestamp_seconds", "IPv4"] == 2.0
    assert values["kubeproxy_sync_proxy_rules_no_local_endpoints_total", "IPv4", "external"] == 2
    assert values["kubeproxy_sync_proxy_rules_no_local_endpoints_total", "IPv4", "internal"] == 0
    assert values["kubeproxy_proxy_livez_total", "503"] == 1
