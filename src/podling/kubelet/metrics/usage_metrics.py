"""The summary as metrics: `/metrics/resource`, which autoscalers read, and `/metrics/cadvisor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from podling.kubelet.node.machine import Machine
from podling.kubelet.stats.summary import ContainerStats, CPUStats, MemoryStats, PodStats, Summary, SwapStats
from podling.model.time import parse_time

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
