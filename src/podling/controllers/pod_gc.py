"""Pods nobody else will remove: of a node that is gone, deleted before they had a node, or over long ago and
too many.
"""

from __future__ import annotations

from datetime import timedelta

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.pod_disruption import disrupt
from podling.model.errors import StatusError
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.time import Clock

OVER = ("Succeeded", "Failed")
THRESHOLD = 12_500
"""Pods that are over and are kept."""
QUARANTINE = timedelta(seconds=40)
"""A node must be gone this long before its pods go."""
SWEEP: Key = ("", "")
"""The key of the look at all pods that are over."""
REASON, MESSAGE = "DeletionByPodGC", "PodGC: node no longer exists"


class PodGC:
    name = "pod-garbage-collector"

    def __init__(
        self,
        client: Client,
        nodes: Informer[Node],
        pods: Informer[Pod],
        clock: Clock,
        threshold: int = THRESHOLD,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock, self._threshold = client, clock, threshold
        self._nodes, self._pods = nodes, pods
        self._over: set[Key] = set()
        nodes.subscribe(self._node_changed)
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        if key == SWEEP:
            await self._sweep()
            return
        pod = self._pods.get(*key)
        if pod is None:
            return
        node = pod.spec.node_name
        if not node and pod.metadata.deletion_timestamp:
            await self._remove(pod)
        elif node and self._nodes.get("", node) is None and await self._is_gone(node):
            await self._remove(pod, orphaned=True)

    async def _sweep(self) -> None:
        """Remove the oldest of the pods that are over, down to the threshold."""
        over = [pod for key in self._over if (pod := self._pods.get(*key)) is not None]
        over.sort(key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
        for pod in over[: max(len(over) - self._threshold, 0)]:
            await self._remove(pod)

    async def _is_gone(self, node: str) -> bool:
        """An informer may be late: the server knows."""
        try:
            await self._client.get(Node, node)
        except StatusError as error:
            if error.code == 404:
                return True
            raise
        return False

    async def _remove(self, pod: Pod, *, orphaned: bool = False) -> None:
        meta = pod.metadata
        with gone_is_done():
            if orphaned and pod.status.phase not in OVER:
                await disrupt(self._client, pod, REASON, MESSAGE, self._clock.now(), phase="Failed")
            await self._client.delete(Pod, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            for pod in self._pods.items():
                if pod.spec.node_name == old.metadata.name:
                    self._in_quarantine(pod)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        key = (pod.metadata.namespace, pod.metadata.name)
        if new is None:
            self._over.discard(key)
            return
        if new.status.phase in OVER and key not in self._over:
            self._over.add(key)
            if len(self._over) > self._threshold:
                self.queue.add(SWEEP)
        if not new.spec.node_name and new.metadata.deletion_timestamp:
            self.queue.add(key)
        elif old is None and new.spec.node_name and self._nodes.get("", new.spec.node_name) is None:
            self._in_quarantine(new)

    def _in_quarantine(self, pod: Pod) -> None:
        self.queue.add_after((pod.metadata.namespace, pod.metadata.name), QUARANTINE.total_seconds())
