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

from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web

from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import Machine
from podling.kubelet.metrics import exposition
from podling.kubelet.metrics.counters import ContainerCounts, OperationCounts, PodCounts
from podling.kubelet.options.table import configuration
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.host import MeasuredHost, Pages
from podling.kubelet.stats.collector import StatsCollector
from podling.model.codec.json import encode
from podling.process.metrics import TEXT_FORMAT, Exposition, Source, gate_metrics

PATHS = (
    "/stats/summary",
    "/metrics",
    "/metrics/resource",
    "/metrics/cadvisor",
    "/metrics/probes",
    "/runningpods",
    "/runningpods/",
    "/configz",
)


class NodePages:
    """The pages by path, for `KubeletServer`; each is answered with the numbers of its moment."""

    def __init__(
        self,
        host: MeasuredHost,
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
        return dict.fromkeys(PATHS, self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        match request.path.rstrip("/"):
            case "/stats/summary":
                only = request.query.get("only_cpu_and_memory", "false").lower() in ("true", "1")
                return json_page(await self._stats.summary(disk=not only, claims=not only))
            case "/metrics":
                pods = self._host.pods()
                up = [pod.metadata.uid for pod in pods if self._host.ready_sandbox(pod)]
                uses = [(pod.metadata.namespace, await self._host.volume_uses(pod)) for pod in pods]
                return _text(
                    lambda: exposition.node_metrics(self._config, pods, up),
                    lambda: exposition.container_metrics(self._containers),
                    lambda: exposition.pod_metrics(self._pods),
                    lambda: exposition.volume_metrics(uses),
                    lambda: exposition.operation_metrics(self._operations),
                    lambda: gate_metrics(self._config.gates),
                    process=True,
                )
            case "/metrics/resource":
                summary = await self._stats.summary(disk=False)
                return _text(lambda: exposition.resource_metrics(summary))
            case "/metrics/cadvisor":
                whole = await self._stats.summary()
                return _text(lambda: exposition.cadvisor_metrics(whole, self._machine))
            case "/metrics/probes":
                return _text(lambda: exposition.probe_metrics(self._pods))
            case "/configz":
                return json_page({"kubeletconfig": configuration(self._config)})
            case "/runningpods":
                return json_page(pod_list(self._running_pods()))
        raise web.HTTPNotFound

    def _running_pods(self) -> Iterator[object]:
        """As much of each pod as the runtime knows."""
        for pod in self._host.pods():
            containers = [
                {"name": container.name, "image": container.image, "resources": {}}
                for _, container in all_containers(pod)
                if self._host.running_container(pod, container.name)
            ]
            meta = pod.metadata
            names = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
            if containers:
                yield {"metadata": names, "spec": {"containers": containers}, "status": {}}


def pod_list(items: Iterable[object]) -> dict[str, object]:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(items)}


def json_page(data: Any) -> web.Response:
    return web.Response(body=encode(data), content_type="application/json")


def _text(*sources: Source, process: bool = False) -> web.Response:
    return web.Response(
        body=Exposition(sources, process=process).text(), headers={"Content-Type": TEXT_FORMAT}
    )
