"""The node's pods to the one who evicts them: workers end them, the node's object says that it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from podling.kubelet.eviction.messages import REASON
from podling.kubelet.node.allocations import Allocations
from podling.kubelet.node.node import NodeReporter
from podling.kubelet.observed import Termination
from podling.kubelet.planning.ending import FAILED
from podling.kubelet.pod.pod_workers import PodWorkers
from podling.model.meta import KubeObject
from podling.model.pod import Pod


class NodePods:
    """Keeps the promise of `manager.Evictable`."""

    def __init__(self, workers: PodWorkers, reporter: NodeReporter, allocations: Allocations) -> None:
        self._workers = workers
        self._reporter = reporter
        self._allocations = allocations

    def running(self) -> Iterable[Pod]:
        return [worker.pod_with_status for worker in self._workers if worker.asks_for_room]

    async def evict(self, pod: Pod, message: str, grace_seconds: int) -> None:
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            worker.terminate(Termination(REASON, message, FAILED, grace_seconds, is_disruption=True))
            await self._allocations.released(pod.metadata.uid)

    async def clear_ended(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for worker in self._workers:
                tasks.create_task(worker.clear())

    def node(self) -> KubeObject:
        return self._reporter.node

    def pressed(self, conditions: frozenset[str]) -> None:
        self._reporter.pressures = conditions
        self._reporter.refresh()
