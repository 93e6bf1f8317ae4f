"""The bodies of `/metrics`, `/metrics/probes`, `/metrics/resource` and `/metrics/cadvisor`.

The first two show the kubelet's counters, the last two the summary of `stats/`. Every function reads its
numbers at the scrape; nothing is copied before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import Machine
from podling.kubelet.metrics.counters import (
    ContainerCounts,
    OperationCounts,
    PodCounts,
    ProbeLabels,
    managed_ephemeral_containers,
)
from podling.kubelet.pod.host import ClaimedUse
from podling.kubelet.stats.summary import ContainerStats, CPUStats, MemoryStats, PodStats, Summary, SwapStats
from podling.model.rules.status import is_mirror, is_terminal
from podling.model.time import parse_time
from podling.model.types.pod import Pod

VOLUME_STATS = {
    "capacity": ("capacity_bytes", "Capacity of the volume in bytes."),
    "available": ("available_bytes", "Bytes that are left in the volume."),
    "used": ("used_bytes", "Bytes that are used of the volume."),
    "inodes": ("inodes", "Inodes of the volume."),
    "inodes_free": ("inodes_free", "Inodes that are left in the volume."),
    "inodes_used": ("inodes_used", "Inodes that are used of the volume."),
    "abnormal": ("health_status_abnormal", "1 if the driver says that something is wrong with the volume."),
}
"""By the field of VolumeUse."""
NANO = 1e-9
MICRO = 1e-6


class _Families:
    """Metrics of some labels, filled by whoever has numbers; those that are not known are left out."""

    def __init__(self, prefix: str, labels: list[str]) -> None:
        self.cpu = CounterMetricFamily(
            f"{prefix}_cpu_usage_seconds_total", "Seconds of CPU used so far.", labels=labels
        )
        self.memory = GaugeMetricFamily(
            f"{prefix}_memory_working_set_bytes", "Bytes of the working set.", labels=labels
        )
        self.swap = GaugeMetricFamily(
            f"{prefix}_swap_usage_bytes", "Bytes that are swapped out.", labels=labels
        )

    def add(
        self, labels: list[str], cpu: CPUStats | None, memory: MemoryStats | None, swap: SwapStats | None
    ) -> None:
        if cpu is not None and cpu.usage_core_nano_seconds is not None:
            self.cpu.add_metric(labels, cpu.usage_core_nano_seconds * NANO, timestamp=_seconds(cpu.time))
        if memory is not None and memory.working_set_bytes is not None:
            self.memory.add_metric(labels, memory.working_set_bytes, timestamp=_seconds(memory.time))
        if swap is not None and swap.swap_usage_bytes is not None:
            self.swap.add_metric(labels, swap.swap_usage_bytes, timestamp=_seconds(swap.time))

    def __iter__(self) -> Iterator[Metric]:
        return iter((self.cpu, self.memory, self.swap))


def resource_metrics(summary: Summary) -> Iterable[Metric]:
    """/metrics/resource, as the metrics server reads it."""
    node, pods = _Families("node", []), _Families("pod", ["namespace", "pod"])
    containers = _Families("container", ["container", "namespace", "pod"])
    begun = GaugeMetricFamily(
        "container_start_time_seconds",
        "When the container was started, in seconds since the epoch.",
        labels=["container", "namespace", "pod"],
    )
    node.add([], summary.node.cpu, summary.node.memory, summary.node.swap)
    for pod in summary.pods:
        where = [pod.pod_ref.namespace, pod.pod_ref.name]
        pods.add(where, pod.cpu, pod.memory, pod.swap)
        for container in pod.containers:
            containers.add([container.name, *where], container.cpu, container.memory, container.swap)
            if container.start_time:
                begun.add_metric([container.name, *where], _seconds(container.start_time))
    yield from (*containers, begun, *pods, *node)
    yield GaugeMetricFamily("resource_scrape_error", "1 if there was an error while getting metrics.", 0)


def cadvisor_metrics(summary: Summary, machine: Machine) -> Iterable[Metric]:
    """Those of cAdvisor's metrics that dashboards are made of. Pods as a whole have no container's name."""
    labels = ["container", "namespace", "pod"]
    cpu = CounterMetricFamily(
        "container_cpu_usage_seconds_total", "Seconds of CPU used so far.", labels=labels
    )
    gauges = {
        "container_memory_usage_bytes": "usage_bytes",
        "container_memory_working_set_bytes": "working_set_bytes",
        "container_memory_rss": "rss_bytes",
    }
    families = {name: GaugeMetricFamily(name, "Bytes of memory.", labels=labels) for name in gauges}
    disk = GaugeMetricFamily("container_fs_usage_bytes", "Bytes in the writable layer.", labels=labels)
    for pod in summary.pods:
        where = [pod.pod_ref.namespace, pod.pod_ref.name]
        whole = ContainerStats(name="", cpu=pod.cpu, memory=pod.memory)
        for part in (whole, *pod.containers):
            if part.cpu is not None:
                cpu.add_metric([part.name, *where], (part.cpu.usage_core_nano_seconds or 0) * NANO)
            for name, attribute in gauges.items():
                families[name].add_metric([part.name, *where], getattr(part.memory, attribute, None) or 0)
            if part.rootfs is not None:
                disk.add_metric([part.name, *where], part.rootfs.used_bytes or 0)
    yield from (cpu, *families.values(), disk, *_network(summary.pods), *_pressure(summary.pods))
    yield GaugeMetricFamily("machine_cpu_cores", "Number of logical CPU cores.", machine.cpus)
    yield GaugeMetricFamily("machine_memory_bytes", "Bytes of memory on the machine.", machine.memory)


def volume_metrics(uses: Iterable[tuple[str, Sequence[ClaimedUse]]]) -> Iterable[Metric]:
    """Of the volumes of claims: a namespace, and those of one of its pods. Several pods may have the same."""
    labels = ["namespace", "persistentvolumeclaim"]
    families = {
        field: GaugeMetricFamily(f"kubelet_volume_stats_{name}", text, labels=labels)
        for field, (name, text) in VOLUME_STATS.items()
    }
    of_claims = {(ns, one.claim): one.use for ns, some in uses for one in some if one.claim}
    for claim, use in of_claims.items():
        for field, family in families.items():
            if (value := getattr(use, field)) is not None:
                family.add_metric(claim, value)
    return [family for family in families.values() if family.samples]


def _network(pods: Iterable[PodStats]) -> Iterable[Metric]:
    directions = {"receive": "rx", "transmit": "tx"}
    families = {
        (way, what): CounterMetricFamily(
            f"container_network_{way}_{what}_total",
            f"What the pod's interfaces count as {what}.",
            labels=["interface", "namespace", "pod"],
        )
        for way in directions
        for what in ("bytes", "errors")
    }
    for pod in pods:
        for interface in pod.network.interfaces if pod.network else ():
            for (way, what), family in families.items():
                where = [interface.name, pod.pod_ref.namespace, pod.pod_ref.name]
                family.add_metric(where, getattr(interface, f"{directions[way]}_{what}") or 0)
    return families.values()


def _pressure(pods: Iterable[PodStats]) -> Iterable[Metric]:
    """How long what runs in containers waited: some of it, or all of it at once."""
    families = {
        (resource, whose): CounterMetricFamily(
            f"container_pressure_{resource}_{name}_seconds_total",
            f"Seconds in which {whose} that could have run waited for {resource}.",
            labels=["container", "namespace", "pod"],
        )
        for resource in ("cpu", "memory", "io")
        for whose, name in (("some", "waiting"), ("full", "stalled"))
    }
    for pod in pods:
        whole = ContainerStats(name="", cpu=pod.cpu, memory=pod.memory, io=pod.io)
        for part in (whole, *pod.containers):
            for (resource, whose), family in families.items():
                psi = getattr(getattr(part, resource), "psi", None)
                if psi is not None:
                    where = [part.name, pod.pod_ref.namespace, pod.pod_ref.name]
                    family.add_metric(where, getattr(psi, whose).total * MICRO)
    return families.values()


def _seconds(time: str) -> float:
    moment: datetime = parse_time(time)
    return moment.timestamp()


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
        ("kubelet_active_pods", [pod for pod in pods if not is_terminal(pod)]),
    ):
        family = GaugeMetricFamily(metric, "Number of pods the kubelet is to run.", labels=["static"])
        static = sum(is_mirror(pod) for pod in chosen)
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
    """Starts of containers and their failures, by type (R-EPH-9)."""
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
    """What is counted of pods, images and evictions."""
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
    """Calls to the runtime, by Kubernetes' names for them."""
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
    """/metrics/probes."""
    probes = CounterMetricFamily(
        "prober_probe_total", "Probes of containers, by their result.", labels=ProbeLabels._fields
    )
    for labels, count in counts.probes.items():
        probes.add_metric(labels, count)
    yield probes
