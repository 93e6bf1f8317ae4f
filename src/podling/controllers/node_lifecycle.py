"""The life of nodes: one whose kubelet is silent for too long is Unknown, and taints say what its state is.

A kubelet renews its lease every ten seconds. When a renewal was seen is noted here by this clock, so that the
clocks of two machines are never compared. The taints keep new pods away, and make the taint eviction end
those that are there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.node_health import readiness, taints, unknown
from podling.model import json
from podling.model.lease import Lease
from podling.model.node import Node, NodeStatus
from podling.model.pod import Pod
from podling.model.time import Clock, rfc3339

LEASES = "kube-node-lease"
GRACE = timedelta(seconds=50)


class NodeLifecycle:
    name = "node-lifecycle"

    def __init__(
        self,
        client: Client,
        nodes: Informer[Node],
        leases: Informer[Lease],
        pods: Informer[Pod],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock = client, events, clock
        self._nodes, self._pods = nodes, pods
        self._heard: dict[str, datetime] = {}
        nodes.subscribe(self._node_changed)
        leases.subscribe(self._lease_changed)

    async def reconcile(self, key: Key) -> None:
        node = self._nodes.get(*key)
        if node is None:
            self._heard.pop(key[1], None)
            return
        now = self._clock.now()
        silent = now - self._heard.setdefault(key[1], now)
        if silent >= GRACE:
            node = await self._silent(node, rfc3339(now))
        else:
            self.queue.add_after(key, (GRACE - silent).total_seconds())
        await self._taint(node, rfc3339(now))
        if readiness(node) == "Unknown":
            await self._mark_pods(node)

    async def _silent(self, node: Node, now: str) -> Node:
        said = unknown(node, now)
        if said == node.status.conditions:
            return node
        if readiness(node) == "True":
            text = f"Node {node.metadata.name} status is now: NodeNotReady"
            self._events.normal(node, "NodeNotReady", text)
        status: NodeStatus = replace(node.status, conditions=said)
        return await self._client.update(replace(node, status=status), subresource="status")

    async def _taint(self, node: Node, now: str) -> None:
        wanted = taints(node, now)
        if wanted != node.spec.taints:
            spec = {"taints": json.to_data(wanted)}
            version = {"resourceVersion": node.metadata.resource_version}
            await self._client.patch(Node, node.metadata.name, "", {"metadata": version, "spec": spec})

    async def _mark_pods(self, node: Node) -> None:
        """No pod is known to be ready on a node nobody hears of."""
        for pod in tuple(self._pods.items()):
            ready = any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
            if pod.spec.node_name == node.metadata.name and ready:
                await self._mark(pod)

    async def _mark(self, pod: Pod) -> None:
        now = rfc3339(self._clock.now())
        conditions = [
            replace(c, status="False", last_transition_time=now) if c.type == "Ready" else c
            for c in pod.status.conditions
        ]
        status = replace(pod.status, conditions=conditions)
        with gone_is_done():
            await self._client.update(replace(pod, status=status), subresource="status")
            self._events.warning(pod, "NodeNotReady", "Node is not ready")

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        changed = new or old
        if changed is None:
            return
        heartbeat = _heartbeat(new) if new is not None else ""
        if heartbeat and (old is None or heartbeat != _heartbeat(old)) and _is_kubelets(new):
            self._heard[changed.metadata.name] = self._clock.now()
        self.queue.add(("", changed.metadata.name))

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        if new is None or new.metadata.namespace != LEASES:
            return
        if old is None or new.spec.renew_time != old.spec.renew_time:
            name = new.metadata.name
            self._heard[name] = self._clock.now()
            node = self._nodes.get("", name)
            if node is not None and readiness(node) == "Unknown":
                self.queue.add(("", name))


def _heartbeat(node: Node) -> str | None:
    return next((c.last_heartbeat_time for c in node.status.conditions if c.type == "Ready"), None)


def _is_kubelets(node: Node | None) -> bool:
    """Whether what the status says is the kubelet's own word."""
    return node is not None and readiness(node) != "Unknown"
