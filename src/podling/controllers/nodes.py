"""The node lifecycle controller and taint eviction.

A node whose kubelet has not renewed its lease for the grace period becomes Unknown, and taints follow from
its conditions: they keep new pods away, and taint eviction ends those that run there, which waits its turn
where much of a zone is lost (`node_zones.py`). The time of a renewal is when this process saw it, so clocks
of two machines are never compared.

`TaintEviction` deletes pods that do not tolerate a NoExecute taint, at once or when tolerationSeconds have
passed. The time counts from the taint's timeAdded, so a restarted controller neither hurries nor forgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Groups, Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.disruption import disrupt
from podling.controllers.node_zones import EXCLUDED, Gate, Limits, Zones, zone_of
from podling.model.codec import json
from podling.model.rules.placement import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    tolerates,
)
from podling.model.rules.status import is_condition_true
from podling.model.time import Clock, parse_optional, rfc3339
from podling.model.types.coordination import Lease
from podling.model.types.node import Node, NodeCondition, NodeStatus, Taint
from podling.model.types.pod import Pod, Toleration

NODE_TELLER, EVICTION_TELLER = "node-controller", "taint-eviction-controller"
"""Who tells the events."""
REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"

CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
OF_CONDITION = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
MANAGED = frozenset((NOT_READY, UNREACHABLE, UNSCHEDULABLE, *OF_CONDITION.values()))
"""Keys of the taints that follow from a node's state."""
OLDER_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
LEASES = "kube-node-lease"


class Monitoring(Struct, frozen=True):
    grace: timedelta = timedelta(seconds=50)
    """A kubelet that is silent for longer makes its node Unknown."""
    period: timedelta = timedelta(seconds=5)
    """Nodes that are lost within it are judged together, before pods of any are evicted."""
    limits: Limits = Limits()


USUAL = Monitoring()


class TaintEviction:
    name = "taint-eviction"

    def __init__(
        self,
        client: Client,
        nodes: Informer[Node],
        pods: Informer[Pod],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock = client, events, clock
        self._nodes, self._pods = nodes, pods
        self._of_node: Groups[Pod] = Groups(pods, lambda pod: pod.spec.node_name or None)
        self._waiting: set[Key] = set()
        """Pods that tolerate a taint for a while."""
        nodes.subscribe(self._node_changed)
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.get(*key)
        node = self._nodes.get("", pod.spec.node_name) if pod is not None else None
        if pod is None or node is None or pod.metadata.deletion_timestamp:
            self._waiting.discard(key)
            return
        now = self._clock.now()
        due = eviction_time(_executing(node), pod.spec.tolerations, now)
        if due is not None and due > now:
            self._waiting.add(key)
            self.queue.add_after(key, (due - now).total_seconds())
            return
        was_waiting = key in self._waiting
        self._waiting.discard(key)
        if due is None:
            if was_waiting:
                text = f"Cancelling deletion of Pod {key[0]}/{key[1]}"
                self._events.normal(pod, "TaintManagerEviction", text)
            return
        text = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self._events.normal(pod, "TaintManagerEviction", text)
        with gone_is_done():
            await disrupt(self._client, pod, REASON, MESSAGE, now)
            await self._client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None or (not _executing(new) and (old is None or not _executing(old))):
            return
        for pod in self._of_node.of(new.metadata.name):
            self.queue.add((pod.metadata.namespace, pod.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.node_name:
            return
        bound = old is None or old.spec.node_name != new.spec.node_name
        if bound or old is None or old.spec.tolerations != new.spec.tolerations:
            self.queue.add((new.metadata.namespace, new.metadata.name))


def _executing(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]


def eviction_time(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], now: datetime
) -> datetime | None:
    """When the pod must be evicted, possibly in the past; None when it may stay."""
    times = []
    for taint in taints:
        since = parse_optional(taint.time_added) or now
        tolerating = [one for one in tolerations if tolerates(one, taint)]
        limits = [one.toleration_seconds for one in tolerating if one.toleration_seconds is not None]
        if not tolerating:
            times.append(since)
        elif limits:
            times.append(since + timedelta(seconds=max(min(limits), 0)))
        # A toleration without a limit holds for ever.
    return min(times, default=None)


def unknown(node: Node, now: str) -> list[NodeCondition]:
    """The node's conditions when its kubelet has been silent for too long."""
    standing = {condition.type: condition for condition in node.status.conditions}
    for type in CONDITIONS:
        before = standing.get(type)
        if before is None:
            reason, message = NEVER
            standing[type] = NodeCondition(
                type=type,
                status="Unknown",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=now,
                reason=reason,
                message=message,
            )
        elif before.status != "Unknown":
            reason, message = STOPPED
            standing[type] = replace(
                before, status="Unknown", reason=reason, message=message, last_transition_time=now
            )
    return list(standing.values())


def readiness(node: Node) -> str:
    """`True`, `False` or `Unknown`; the empty string for a node without the condition Ready."""
    return next((c.status for c in node.status.conditions if c.type == "Ready"), "")


def taints(node: Node, now: str, *, given_up: bool) -> list[Taint]:
    """The taints the node should have: those that follow from its state, and all it has that this controller
    does not manage. `given_up`: if it is not ready, its pods are to be evicted."""
    due: list[tuple[str, str]] = []
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(readiness(node))
    if key is not None:
        due += [(key, NO_SCHEDULE), (key, NO_EXECUTE)][: 1 + given_up]
    for condition in node.status.conditions:
        if condition.type in OF_CONDITION and condition.status == "True":
            due.append((OF_CONDITION[condition.type], NO_SCHEDULE))
    if node.spec.unschedulable:
        due.append((UNSCHEDULABLE, NO_SCHEDULE))
    # One that is there keeps its time: evictions count from it.
    kept = [
        taint for taint in node.spec.taints if taint.key not in MANAGED or (taint.key, taint.effect) in due
    ]
    there = {(taint.key, taint.effect) for taint in kept}
    new = [Taint(key=key, effect=effect, time_added=now) for key, effect in due if (key, effect) not in there]
    return [*kept, *new]


def is_given_up(node: Node) -> bool:
    return any(taint.key in (NOT_READY, UNREACHABLE) for taint in _executing(node))


def older_labels(node: Node) -> dict[str, str]:
    """Those to be set: the names that labels of the node had once say the same."""
    labels = node.metadata.labels
    wanted = {old: labels[new] for new, old in OLDER_LABELS.items() if new in labels}
    return {name: value for name, value in wanted.items() if labels.get(name) != value}


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
        monitoring: Monitoring = USUAL,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock, self._monitoring = client, events, clock, monitoring
        self._nodes = nodes
        self._pods: Groups[Pod] = Groups(pods, lambda pod: pod.spec.node_name or None)
        self._heard: dict[str, datetime] = {}
        self._lost: dict[str, datetime] = {}
        """Since when nodes are not ready that are not given up."""
        self._zones = Zones(monitoring.limits)
        self._at_gate: dict[str, Gate] = {}
        """Of nodes that wait for their turn to be given up."""
        self._counts_changed = True
        self._known: dict[str, Node] = {}
        """As they were when they came."""
        nodes.subscribe(self._node_changed)
        leases.subscribe(self._lease_changed)

    async def reconcile(self, key: Key) -> None:
        node = self._nodes.get(*key)
        known = self._known.get(key[1])
        if known is not None and (node is None or node.metadata.uid != known.metadata.uid):
            del self._known[key[1]]
            told = f"Node {key[1]} event: Removing Node {key[1]} from Controller"
            self._events.normal(known, "RemovingNode", told)
        now = self._clock.now()
        if self._counts_changed:
            self._counts_changed = False
            judged = self._zones.judge(now)
            if judged.some_again:
                # Those that are still ready could not say so.
                self._heard = dict.fromkeys(self._heard, now)
            if judged.changed:
                for one in self._nodes.items():
                    if readiness(one) != "True":
                        self.queue.add(("", one.metadata.name))
        if node is None:
            self._heard.pop(key[1], None)
            self._lost.pop(key[1], None)
            self._leave_gate(key[1])
            return
        if key[1] not in self._known:
            self._known[key[1]] = node
            told = f"Node {key[1]} event: Registered Node {key[1]} in Controller"
            self._events.normal(node, "RegisteredNode", told)
        silent = now - self._heard.setdefault(key[1], now)
        if silent >= self._monitoring.grace:
            node = await self._silent(node, rfc3339(now))
        else:
            self.queue.add_after(key, (self._monitoring.grace - silent).total_seconds())
        given_up = self._is_to_be_given_up(node, now)
        if given_up:
            # Before it is written: one that cannot be does not keep the others waiting.
            self._leave_gate(key[1])
        wanted = taints(node, rfc3339(now), given_up=given_up)
        changes: dict[str, Any] = {}
        if wanted != node.spec.taints:
            changes["spec"] = {"taints": json.to_data(wanted)}
        if labels := older_labels(node):
            changes["metadata"] = {"labels": labels}
        if changes:
            version = {"resourceVersion": node.metadata.resource_version}
            patch = {**changes, "metadata": {**changes.get("metadata", {}), **version}}
            await self._client.patch(Node, node.metadata.name, "", patch)
        if given_up and not is_given_up(node):
            self._zones.gate(node).through(now)
        if readiness(node) == "Unknown":
            await self._mark_pods(node)

    def _is_to_be_given_up(self, node: Node, now: datetime) -> bool:
        """If it is only too early, the node comes again: in time, or once it is the first at its gate."""
        name = node.metadata.name
        if readiness(node) not in ("False", "Unknown"):
            self._lost.pop(name, None)
            self._leave_gate(name)
            return False
        if is_given_up(node):
            return not self._zones.all_lost
        wait: timedelta | None = self._monitoring.period - (now - self._lost.setdefault(name, now))
        if wait is not None and wait <= timedelta():
            gate = self._zones.gate(node)
            if self._at_gate.get(name) is not gate:
                # It may have moved from another zone.
                self._leave_gate(name)
                self._at_gate[name] = gate
            if not gate.is_first(name):
                return False
            wait = gate.wait(now)
        if wait is not None and wait > timedelta():
            self.queue.add_after(("", name), wait.total_seconds())
        return wait is not None and wait <= timedelta()

    def _leave_gate(self, name: str) -> None:
        gate = self._at_gate.pop(name, None)
        if gate is not None and (first := gate.leave(name)) is not None:
            self.queue.add(("", first))

    async def _silent(self, node: Node, now: str) -> Node:
        said = unknown(node, now)
        if said == node.status.conditions:
            return node
        if readiness(node) == "True":
            text = f"Node {node.metadata.name} status is now: NodeNotReady"
            self._events.normal(node, "NodeNotReady", text)
        status: NodeStatus = replace(node.status, conditions=said)
        return await self._client.update(replace(node, status=status), subresource="status")

    async def _mark_pods(self, node: Node) -> None:
        """Set Ready to False on the pods of a node whose kubelet is silent."""
        for pod in tuple(self._pods.of(node.metadata.name)):
            conditions = pod.status.conditions
            if not is_condition_true(conditions, "Ready"):
                continue
            now = rfc3339(self._clock.now())
            marked = [
                replace(c, status="False", last_transition_time=now) if c.type == "Ready" else c
                for c in conditions
            ]
            status = replace(pod.status, conditions=marked)
            with gone_is_done():
                await self._client.update(replace(pod, status=status), subresource="status")
                self._events.warning(pod, "NodeNotReady", "Node is not ready")

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        changed = new or old
        if changed is None:
            return
        if _counted_as(old) != _counted_as(new):
            self._zones.change(old, new)
            self._counts_changed = True
        heartbeat = _heartbeat(new) if new is not None else ""
        # Unknown is what this controller writes; all else is the kubelet's own status.
        told = new is not None and readiness(new) != "Unknown"
        if heartbeat and (old is None or heartbeat != _heartbeat(old)) and told:
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


def _counted_as(node: Node | None) -> object:
    """What of it the state of zones follows from."""
    return node and (zone_of(node), EXCLUDED in node.metadata.labels, readiness(node))
