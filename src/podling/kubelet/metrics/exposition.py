"""`/metrics`: what the kubelet has counted, and `/metrics/probes`. Read at each scrape, from where it is
kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from podling.kubelet.config import KubeletConfig
from podling.kubelet.container_counts import ContainerCounts, managed_ephemeral_containers
from podling.kubelet.metrics.operations import OperationCounts
from podling.kubelet.metrics.pod_counts import PodCounts, ProbeLabels
from podling.model.pod import Pod
from podling.stall_metrics import stall_metrics

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
MIRROR = "kubernetes.io/config.mirror"
ENDED = ("Succeeded", "Failed")

Source = Callable[[], Iterable[Metric]]


def rendered(*sources: Source, process: bool = False) -> bytes:
    """All of them in the text format; with `process`, this process's own numbers before."""
    registry = CollectorRegistry(auto_describe=False)
    if process:
        # pid 1 of a container counts as any other; the collector reads /proc/PID.
        ProcessCollector(pid=os.getpid, registry=registry)
        registry.register(_FromSource(stall_metrics))
    for source in sources:
        registry.register(_FromSource(source))
    return generate_latest(registry)


class _FromSource(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        return self._source()


def node_metrics(config: KubeletConfig, pods: Sequence[Pod], running: Iterable[str]) -> Iterable[Metric]:
    """`running` are the uids of the pods that have a sandbox that is up."""
    name = GaugeMetricFamily("kubelet_node_name", "The node's name. The count is always 1.", labels=["node"])
    name.add_metric([config.node_name], 1)
    yield name
    yield GaugeMetricFamily(
        "kubelet_running_pods", "Number of pods that have a running pod sandbox", len(set(running))
    )
    states = GaugeMetricFamily(
        "kubelet_running_containers", "Number of containers by state.", labels=["container_state"]
    )
    for state, count in _containers_by_state(pods).items():
        states.add_metric([state], count)
    yield states
    for metric, chosen in (
        ("kubelet_desired_pods", list(pods)),
        ("kubelet_active_pods", [pod for pod in pods if pod.status.phase not in ENDED]),
    ):
        family = GaugeMetricFamily(metric, "Number of pods the kubelet is to run.", labels=["static"])
        static = sum(MIRROR in pod.metadata.annotations for pod in chosen)
        family.add_metric([""], len(chosen) - static)
        family.add_metric(["true"], static)
        yield family
    yield GaugeMetricFamily(
        "kubelet_managed_ephemeral_containers",
        "Current number of ephemeral containers in pods managed by this kubelet.",
        managed_ephemeral_containers(pods),
    )


def _containers_by_state(pods: Iterable[Pod]) -> dict[str, int]:
    counts = {"created": 0, "exited": 0, "running": 0, "unknown": 0}
    for pod in pods:
        known = pod.status
        lists = (known.init_container_statuses, known.container_statuses, known.ephemeral_container_statuses)
        for status in (status for statuses in lists for status in statuses):
            counts["running"] += status.state.running is not None
            counts["exited"] += status.state.terminated is not None
    return counts


def container_metrics(counts: ContainerCounts) -> Iterable[Metric]:
    started = CounterMetricFamily(
        "kubelet_started_containers_total", "Containers that were started.", labels=["container_type"]
    )
    for kind, count in counts.started.items():
        started.add_metric([kind], count)
    yield started
    failed = CounterMetricFamily(
        "kubelet_started_containers_errors_total",
        "Containers that could not be started.",
        labels=["container_type", "code"],
    )
    for (kind, code), count in counts.failed.items():
        failed.add_metric([kind, code], count)
    yield failed


def pod_metrics(counts: PodCounts) -> Iterable[Metric]:
    yield CounterMetricFamily("kubelet_started_pods_total", "Pods that were started.", counts.sandboxes)
    yield _by_label(
        "kubelet_started_pods_errors_total", "Pods that failed to start.", "code", counts.sandbox_errors
    )
    took = HistogramMetricFamily(
        "kubelet_pod_start_duration_seconds",
        "Seconds from the kubelet seeing a pod for the first time to the pod running.",
        labels=[],
    )
    took.add_metric([], counts.start_seconds.buckets(), counts.start_seconds.total)
    yield took
    yield _by_label(
        "kubelet_image_garbage_collected_total",
        "Images that were removed.",
        "reason",
        counts.images_collected,
    )
    # Kubernetes counts these under a name that does not end as counters' names do.
    evictions = Metric("kubelet_evictions", "Pods evicted, by the signal that caused it.", "unknown")
    for signal, count in counts.evictions.items():
        evictions.add_sample("kubelet_evictions", {"eviction_signal": signal}, count)
    yield evictions


def _by_label(name: str, what: str, label: str, counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, what, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def operation_metrics(counts: OperationCounts) -> Iterable[Metric]:
    label, name = "operation_type", "kubelet_runtime_operations"
    yield _by_label(f"{name}_total", "What the runtime was asked.", label, counts.calls)
    yield _by_label(f"{name}_errors_total", "What the runtime refused or failed.", label, counts.errors)
    seconds = HistogramMetricFamily(
        f"{name}_duration_seconds", "Seconds until the runtime had answered.", labels=[label]
    )
    for operation, histogram in counts.seconds.items():
        seconds.add_metric([operation], histogram.buckets(), histogram.total)
    yield seconds


def probe_metrics(counts: PodCounts) -> Iterable[Metric]:
    probes = CounterMetricFamily(
        "prober_probe_total", "Probes of containers, by their result.", labels=ProbeLabels._fields
    )
    for labels, count in counts.probes.items():
        probes.add_metric(labels, count)
    yield probes
