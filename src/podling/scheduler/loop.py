"""The scheduler: pods without a node come in by informer, the best node goes out as a binding.

The loop keeps one NodeInfo a node, fed by the informers, and adds a pod to it the moment it decides (it
*assumes* the binding), so the next pod sees the room gone. A pod that fits nowhere waits until a node or a
pod changes in a way that can make room; what it waits for is its PodScheduled condition and a
FailedScheduling event.
"""

from __future__ import annotations

from collections import Counter

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue, work
from podling.model.errors import StatusError
from podling.model.meta import ObjectMeta
from podling.model.node import Node
from podling.model.pod import Binding, Pod
from podling.model.references import ObjectReference
from podling.model.time import Clock, rfc3339
from podling.scheduler.filter import objections
from podling.scheduler.node_info import FINISHED, NodeInfo
from podling.scheduler.score import best

Key = tuple[str, str]

SCHEDULER_NAME = "default-scheduler"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Scheduler:
    """Binds the pods that ask for `name`."""

    def __init__(
        self,
        client: Client,
        pods: Informer[Pod],
        nodes: Informer[Node],
        events: EventRecorder,
        clock: Clock,
        name: str = SCHEDULER_NAME,
    ) -> None:
        self._client = client
        self._pods = pods
        self._events = events
        self._clock = clock
        self._name = name
        self._infos: dict[str, NodeInfo] = {}
        self._assumed: dict[str, str] = {}
        self._unschedulable: set[Key] = set()
        self._queue: WorkQueue[Key] = WorkQueue()
        nodes.subscribe(self._node_changed)
        pods.subscribe(self._pod_changed)

    async def run(self) -> None:
        """Schedule for ever; run it after the informers have synced."""
        await work(self._queue, self.schedule, "scheduler")

    async def schedule(self, key: Key) -> None:
        """Find a node for one pod and bind it, or say why there is none."""
        pod = self._pods.get(*key)
        if pod is None or not self._is_ours(pod):
            return
        reasons = Counter[str]()
        candidates = []
        for info in self._infos.values():
            found = objections(pod, info)
            reasons.update(found)
            if not found:
                candidates.append(info)
        if candidates:
            await self._bind(pod, best(pod, candidates))
        else:
            self._unschedulable.add(key)
            await self._say_unschedulable(pod, explanation(len(self._infos), reasons))

    async def _bind(self, pod: Pod, info: NodeInfo) -> None:
        node = info.node.metadata.name
        self._assume(pod, info)
        binding = Binding(
            metadata=ObjectMeta(
                name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid
            ),
            target=ObjectReference(kind="Node", name=node),
        )
        try:
            await self._client.create_subresource(Pod, pod.metadata.name, "binding", binding)
        except (StatusError, OSError) as error:
            self._forget(pod)
            if isinstance(error, StatusError) and error.code == 404:
                return
            raise
        where = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self._events.normal(pod, "Scheduled", f"Successfully assigned {where} to {node}")

    async def _say_unschedulable(self, pod: Pod, message: str) -> None:
        self._events.warning(pod, "FailedScheduling", message)
        standing = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if standing is not None and standing.message == message:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        await self._client.patch(
            Pod,
            pod.metadata.name,
            pod.metadata.namespace,
            {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}},
            subresource="status",
            patch_type=STRATEGIC_PATCH,
        )

    def _is_ours(self, pod: Pod) -> bool:
        return (
            pod.spec.scheduler_name == self._name
            and not pod.spec.node_name
            and not pod.spec.scheduling_gates
            and not pod.metadata.deletion_timestamp
            and pod.status.phase not in FINISHED
            and pod.metadata.uid not in self._assumed
        )

    def _assume(self, pod: Pod, info: NodeInfo) -> None:
        self._assumed[pod.metadata.uid] = info.node.metadata.name
        info.add(pod)

    def _forget(self, pod: Pod) -> None:
        node = self._assumed.pop(pod.metadata.uid, None)
        if node in self._infos:
            self._infos[node].remove(pod)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._infos.pop(old.metadata.name, None)
            return
        info = self._infos.get(new.metadata.name)
        if info is None:
            info = self._infos[new.metadata.name] = NodeInfo(new)
            for pod in self._pods.items():
                if pod.spec.node_name == new.metadata.name:
                    info.add(pod)
        info.node = new
        if old is None or _room_may_have_grown(old, new):
            self._try_again()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        key = (pod.metadata.namespace, pod.metadata.name)
        if new is None:
            self._unschedulable.discard(key)
            self._left(pod)
        elif new.spec.node_name:
            self._settled(new)
        elif self._is_ours(new) and (old is None or old.spec != new.spec or key not in self._unschedulable):
            self._unschedulable.discard(key)
            self._queue.add(key)

    def _settled(self, pod: Pod) -> None:
        """The pod has a node; a finished one gives its room back."""
        self._assumed.pop(pod.metadata.uid, None)
        info = self._infos.get(pod.spec.node_name)
        if info is None:
            return
        had_room = pod.metadata.uid in info.pods
        info.add(pod)
        if had_room and pod.status.phase in FINISHED:
            self._try_again()

    def _left(self, pod: Pod) -> None:
        self._forget(pod)
        info = self._infos.get(pod.spec.node_name)
        if info is not None:
            info.remove(pod)
            self._try_again()

    def _try_again(self) -> None:
        for key in self._unschedulable:
            self._queue.add(key)
        self._unschedulable.clear()


def explanation(nodes: int, reasons: Counter[str]) -> str:
    """The message of FailedScheduling: reasons with the number of nodes each holds for, in order of their
    text.
    """
    if not nodes:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return (
        f"0/{nodes} nodes are available: {listed}. "
        f"preemption: 0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
    )


def _room_may_have_grown(old: Node, new: Node) -> bool:
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.allocatable != new.status.allocatable
    )
