"""The eviction manager: every ten seconds it checks what the node has left, and evicts pods until it is
enough.

read ▸ pods over their own limits: evict those ▸ thresholds crossed? ▸ reclaim (dead containers, images)
     ▸ rank ▸ evict one ▸ wait until it is gone ▸ read again

No kernel reports that a file system is nearly full, so the manager polls. A reading takes some tens of
microseconds; pods are only measured when a threshold is crossed or a pod has limits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol

from podling.cri.interface import RuntimeFault
from podling.kubelet.eviction.ranking import Candidate, excess, is_limited, node_is_low, ranked
from podling.kubelet.eviction.thresholds import (
    CONDITIONS,
    RESOURCES,
    NodeReadings,
    Pressure,
    Readings,
    Threshold,
    is_crossed,
    thresholds,
)
from podling.kubelet.images.garbage import ImageCollector
from podling.kubelet.node.reporter import NodeReporter
from podling.kubelet.node.shared import DISK_PRESSURE, EVICTED, Allocations
from podling.kubelet.options.signals import NODEFS, NODEFS_INODES
from podling.kubelet.plan.ending import FAILED
from podling.kubelet.pod.observed import Termination
from podling.kubelet.stats.collector import StatsCollector
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.workers import PodWorkers
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod

GRACE = 1
"""The grace period of a pod that is evicted for a hard threshold or its own limit."""
LONGEST_END = 30.0
"""Seconds to wait for an evicted pod to be gone before looking again."""

log = logging.getLogger(__name__)


class Evictable(Protocol):
    """What the eviction manager needs of the node's pods."""

    def running(self) -> Iterable[Pod]: ...

    async def evict(self, pod: Pod, message: str, grace_seconds: int) -> None:
        """Returns when nothing of it runs any more."""
        ...

    async def clear_ended(self) -> None:
        """Remove the dead containers and logs of pods whose phase is terminal; returns when they are gone."""
        ...

    def node(self) -> KubeObject:
        """Whom the node's events are about."""
        ...

    def pressed(self, conditions: frozenset[str]) -> None:
        """The node is under pressure in these ways now."""
        ...


class EvictionManager:
    """Watches the node's resources and evicts pods. `run()` it. It sets `node.pressure`."""

    def __init__(
        self,
        node: NodeContext,
        readings: NodeReadings,
        stats: StatsCollector,
        images: ImageCollector,
        pods: Evictable,
    ) -> None:
        self._node = node
        self._thresholds = thresholds(node.config)
        self._readings = readings
        self._stats = stats
        self._images = images
        self._pods = pods
        self._pressure = Pressure()

    async def run(self) -> NoReturn:
        """Look every `eviction_period`, and at once again after an eviction."""
        while True:
            try:
                evicted = await self.look()
            except (OSError, ValueError) as error:
                # A file that cannot be read or understood now must not end the node.
                log.warning("what the node has left is not known: %s", error)
                evicted = False
            if not evicted:
                await asyncio.sleep(self._node.config.eviction_period.total_seconds())

    async def look(self) -> bool:
        """Check once; True if a pod was evicted."""
        if self._readings.images is None:
            with suppress(RuntimeFault):
                for found in (await self._node.runtime.image_fs_info()).image_filesystems[:1]:
                    self._readings.images = Path(found.fs_id.mountpoint)
        readings = self._readings.read()
        before, stays = self._pressure, self._node.config.eviction_pressure_transition
        now = self._pressure = before.next(self._thresholds, readings, self._node.clock.now(), stays)
        self._node.pressure.conditions = now.conditions
        if now.conditions != before.conditions:
            self._pods.pressed(now.conditions)
        if await self._evict_the_excessive():
            return True
        due = now.due(self._node.clock.now())
        return bool(due) and await self._relieve(due[0], readings)

    async def _evict_the_excessive(self) -> bool:
        limited = {pod.metadata.uid: pod for pod in self._pods.running() if is_limited(pod)}
        if not limited:
            return False
        summary = await self._stats.summary()
        told = {
            stats.pod_ref.uid: message
            for stats in summary.pods
            if (pod := limited.get(stats.pod_ref.uid)) and (message := excess(pod, stats))
        }
        async with asyncio.TaskGroup() as tasks:
            for uid, message in told.items():
                tasks.create_task(self._evict(limited[uid], message, GRACE, "ephemeralpodfs.limit"))
        return bool(told)

    async def _relieve(self, threshold: Threshold, readings: Readings) -> bool:
        """Reclaim what can be or else evict one pod; True if a pod was evicted."""
        signal, resource = threshold.signal, RESOURCES[threshold.signal]
        log.warning("the node is low on %s (%s)", resource, signal)
        self._node.events.warning(
            self._pods.node(), "EvictionThresholdMet", f"Attempting to reclaim {resource}"
        )
        # Dead containers and images are on the images' file system.
        elsewhere = signal in (NODEFS, NODEFS_INODES) and self._readings.images_apart
        can_reclaim = CONDITIONS[signal] == DISK_PRESSURE and not elsewhere
        if can_reclaim and await self._reclaimed(threshold):
            return False
        summary = await self._stats.summary()
        known = {stats.pod_ref.uid: stats for stats in summary.pods}
        candidates = [
            Candidate(pod, known[pod.metadata.uid])
            for pod in self._pods.running()
            if pod.metadata.uid in known
        ]
        for pod, stats in ((first.pod, first.stats) for first in ranked(resource, candidates)[:1]):
            message = node_is_low(threshold, readings.get(signal), pod, stats)
            grace = GRACE
            if not threshold.is_hard:
                most = self._node.config.eviction_max_pod_grace
                own = pod.spec.termination_grace_period_seconds
                grace = most if own is None else min(own, most)
            await self._evict(pod, message, grace, signal)
            return True
        return False

    async def _reclaimed(self, threshold: Threshold) -> bool:
        """Whether it was enough to remove dead containers of pods that are over, then the images nobody uses
        now."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_END):
                await self._pods.clear_ended()
        try:
            await self._images.remove_unused()
        except RuntimeFault as fault:
            log.warning("images are not removed: %s", fault)
        return not is_crossed(threshold, self._readings.read(), again=True)

    async def _evict(self, pod: Pod, message: str, grace_seconds: int, signal: str) -> None:
        self._node.events.warning(pod, EVICTED, message)
        self._node.pod_counts.evictions[signal] += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_END):
                await self._pods.evict(pod, message, grace_seconds)


class NodePods:
    """Evictable, through the pod workers and the Node."""

    def __init__(self, workers: PodWorkers, reporter: NodeReporter, allocations: Allocations) -> None:
        self._workers = workers
        self._reporter = reporter
        self._allocations = allocations

    def running(self) -> Iterable[Pod]:
        return [worker.pod_with_status for worker in self._workers if worker.asks_for_room]

    async def evict(self, pod: Pod, message: str, grace_seconds: int) -> None:
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            worker.terminate(Termination(EVICTED, message, FAILED, grace_seconds, is_disruption=True))
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
