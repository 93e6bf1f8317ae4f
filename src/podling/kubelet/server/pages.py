"""The pages about the kubelet and its node: statistics, metrics, configuration.

/stats/summary       the summary as JSON; `?only_cpu_and_memory=true` leaves out disk and network
/metrics             what the kubelet counts
/metrics/resource    CPU and memory of containers, pods and node
/metrics/cadvisor    these with disk and network, under cAdvisor's names
/metrics/probes      probes by result
/runningpods         the pods that have running containers, according to the runtime
/configz             the KubeletConfiguration in effect
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import Machine
from podling.kubelet.metrics import exposition
from podling.kubelet.metrics.counters import ContainerCounts, OperationCounts, PodCounts
from podling.kubelet.metrics.exposition import cadvisor_metrics, resource_metrics
from podling.kubelet.options.table import configuration
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.host import Pages, PodHost
from podling.kubelet.stats.collector import StatsCollector
from podling.model.codec.json import encode
from podling.model.types.pod import Pod
from podling.process.metrics import TEXT_FORMAT, Exposition, Source, gate_metrics


class NodePages:
    def __init__(
        self,
        host: PodHost,
        config: KubeletConfig,
        machine: Machine,
        stats: StatsCollector,
        containers: ContainerCounts,
        pods: PodCounts,
        operations: OperationCounts,
    ) -> None:
        self._host = host
        self._config = config
        self._machine = machine
        self._stats = stats
        self._containers = containers
        self._pods = pods
        self._operations = operations

    @property
    def by_path(self) -> Pages:
        return {
            "/stats/summary": self._summary,
            "/metrics": self._metrics,
            "/metrics/resource": self._resource,
            "/metrics/cadvisor": self._cadvisor,
            "/metrics/probes": self._probes,
            "/runningpods": self._running_pods,
            "/runningpods/": self._running_pods,
            "/configz": self._configz,
        }

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        only = request.query.get("only_cpu_and_memory", "false").lower() in ("true", "1")
        return _json(await self._stats.summary(disk=not only))

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        pods = self._host.pods()
        up = [pod.metadata.uid for pod in pods if self._host.ready_sandbox(pod)]
        return _text(
            lambda: exposition.node_metrics(self._config, pods, up),
            lambda: exposition.container_metrics(self._containers),
            lambda: exposition.pod_metrics(self._pods),
            lambda: exposition.operation_metrics(self._operations),
            lambda: gate_metrics(self._config.gates),
            process=True,
        )

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        summary = await self._stats.summary(disk=False)
        return _text(lambda: resource_metrics(summary))

    async def _cadvisor(self, request: web.Request) -> web.StreamResponse:
        summary = await self._stats.summary()
        return _text(lambda: cadvisor_metrics(summary, self._machine))

    async def _probes(self, request: web.Request) -> web.StreamResponse:
        return _text(lambda: exposition.probe_metrics(self._pods))

    async def _running_pods(self, request: web.Request) -> web.StreamResponse:
        found = [running for pod in self._host.pods() if (running := self._running(pod))]
        return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found})

    def _running(self, pod: Pod) -> dict[str, Any] | None:
        """As much of the pod as the runtime knows."""
        containers = [
            {"name": container.name, "image": container.image, "resources": {}}
            for _, container in all_containers(pod)
            if self._host.running_container(pod, container.name)
        ]
        meta = pod.metadata
        names = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        return {"metadata": names, "spec": {"containers": containers}, "status": {}} if containers else None

    async def _configz(self, request: web.Request) -> web.StreamResponse:
        return _json({"kubeletconfig": configuration(self._config)})


def _json(data: Any) -> web.Response:
    return web.Response(body=encode(data), content_type="application/json")


def _text(*sources: Source, process: bool = False) -> web.Response:
    return web.Response(
        body=Exposition(sources, process=process).text(), headers={"Content-Type": TEXT_FORMAT}
    )
