"""Pods leave nodes whose NoExecute taints they do not tolerate, at once or when their toleration has run out.

The time runs from when the taint was added, so a controller that starts anew neither hurries nor forgives.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.pod_disruption import disrupt
from podling.model.node import Node, Taint
from podling.model.pod import Pod
from podling.model.scheduling import Toleration
from podling.model.taints import NO_EXECUTE, tolerates
from podling.model.time import Clock, parse_optional

REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"


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
        nodes.subscribe(self._node_changed)
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.get(*key)
        node = self._nodes.get("", pod.spec.node_name) if pod is not None else None
        if pod is None or node is None or pod.metadata.deletion_timestamp:
            return
        now = self._clock.now()
        due = eviction_time(_executing(node), pod.spec.tolerations, now)
        if due is None:
            return
        if due > now:
            self.queue.add_after(key, (due - now).total_seconds())
            return
        text = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self._events.normal(pod, "TaintManagerEviction", text)
        await self._evict(pod)

    async def _evict(self, pod: Pod) -> None:
        with gone_is_done():
            await disrupt(self._client, pod, REASON, MESSAGE, self._clock.now())
            await self._client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None or (not _executing(new) and (old is None or not _executing(old))):
            return
        for pod in self._pods.items():
            if pod.spec.node_name == new.metadata.name:
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
    """When a pod must go, which may be long ago; None when it may stay."""
    times = [time for taint in taints if (time := _until(taint, tolerations, now)) is not None]
    return min(times, default=None)


def _until(taint: Taint, tolerations: Sequence[Toleration], now: datetime) -> datetime | None:
    """How long one taint is tolerated; None is for ever."""
    since = parse_optional(taint.time_added) or now
    tolerating = [one for one in tolerations if tolerates(one, taint)]
    if not tolerating:
        return since
    limits = [one.toleration_seconds for one in tolerating if one.toleration_seconds is not None]
    return since + timedelta(seconds=max(min(limits), 0)) if limits else None
