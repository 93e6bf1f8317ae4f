"""Applies the informers' events to the scheduler's cluster and queue, and wakes pods that a change may help.
It decides nothing and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podling.model.rules.status import is_terminal
from podling.model.types.core import Namespace
from podling.model.types.meta import KubeObject
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSpec
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import PodInfo, given, pod_info
from podling.scheduler.queue import (
    Change,
    NamespaceChanged,
    NodeCame,
    NodeChanged,
    NodeWent,
    PodCame,
    PodLeaving,
    PodLeft,
    SchedulingQueue,
    VolumesChanged,
)


class Tracker:
    """`now` is the time of the queue; `changed` is called when there may be something to schedule."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        scheduler_name: str,
        now: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._cluster, self._queue = cluster, queue
        self._name, self._now, self._changed = scheduler_name, now, changed

    def wake(self, change: Change) -> None:
        if self._queue.has_parked():
            self._queue.wake(change, self._now())
            self._changed()

    def left(self, pod: PodInfo) -> None:
        """`pod` has left its node or lost its nomination: its room is free."""
        self.wake(PodLeft(pod, self._cluster.namespaces))

    def namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is None:
            if old is not None:
                self._cluster.namespaces.pop(old.metadata.name, None)
            return
        self._cluster.namespaces[new.metadata.name] = new.metadata.labels
        if old is None or old.metadata.labels != new.metadata.labels:
            self.wake(NamespaceChanged())

    def volumes_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        self.wake(VolumesChanged())

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._cluster.drop_node(old.metadata.name)
                self.wake(NodeWent())
        elif old is None or new.metadata.name not in self._cluster.nodes:
            self.wake(NodeCame(self._cluster.put_node(new)))
        elif _matters(old, new):
            before = self._cluster.nodes[new.metadata.name].clone()
            self.wake(NodeChanged(before, self._cluster.put_node(new)))

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._gone(old)
            old = None
        if new is None:
            return
        ours = new.spec.scheduler_name == self._name and not new.spec.scheduling_gates
        if new.spec.node_name:
            self._placed(new)
        elif ours and not new.metadata.deletion_timestamp and not is_terminal(new):
            self._pending(old, new)
        else:
            self._gone(new)

    def _pending(self, old: Pod | None, new: Pod) -> None:
        uid = new.metadata.uid
        waiting = self._queue.get(uid)
        if waiting is not None and _asks_the_same(waiting.pod.pod, new):
            waiting.pod.pod = new
        else:
            self._queue.put(pod_info(new), self._now())
            self._changed()
        # A nomination that the scheduler made meanwhile stands until the status names another.
        waiting = self._queue.get(uid)
        promised = new.status.nominated_node_name
        if waiting is not None and (old is None or old.status.nominated_node_name != promised):
            self._cluster.nominate(waiting.pod, promised)

    def _placed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        waiting = self._queue.get(uid)
        if waiting is not None:
            self._cluster.nominate(waiting.pod, "")
            self._queue.drop(uid)
        if is_terminal(pod):
            self._gone(pod)
            return
        known = self._cluster.pod(uid)
        here = self._cluster.node_of(uid) == pod.spec.node_name
        if (
            known is not None
            and here
            and _asks_the_same(known.pod, pod)
            and (given(known.pod) == given(pod) or pod_info(pod).requests == known.requests)
        ):
            first_seen = not known.pod.spec.node_name
            known.pod = pod
            if first_seen:
                self.wake(PodCame(known, self._cluster.namespaces))
            return
        info = pod_info(pod)
        self._cluster.put_pod(info, pod.spec.node_name)
        if known is None:
            self.wake(PodCame(info, self._cluster.namespaces))
        elif pod.metadata.deletion_timestamp and not known.pod.metadata.deletion_timestamp:
            self.wake(PodLeaving(known))
        else:
            self.left(known)
            self.wake(PodCame(info, self._cluster.namespaces))

    def _gone(self, pod: Pod) -> None:
        """The pod was deleted: remove it from its node or from the queue."""
        uid = pod.metadata.uid
        waiting, placed = self._queue.get(uid), self._cluster.pod(uid)
        promised = self._cluster.nomination_of(uid)
        self._queue.drop(uid)
        self._cluster.drop_pod(uid)
        if waiting is not None and promised:
            self._cluster.nominate(waiting.pod, "")
        if placed is not None:
            self.left(placed)
        elif waiting is not None and promised:
            self.left(waiting.pod)


def _matters(old: Node, new: Node) -> bool:
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.allocatable != new.status.allocatable
        or old.status.images != new.status.images
    )


def _asks_the_same(old: Pod, new: Pod) -> bool:
    """Whether both ask the scheduler the same. `node_name` is the scheduler's answer and does not count."""
    return (
        old.metadata.labels == new.metadata.labels
        and bool(old.metadata.deletion_timestamp) == bool(new.metadata.deletion_timestamp)
        and (old.spec == new.spec or _unbound(old) == _unbound(new))
    )


def _unbound(pod: Pod) -> PodSpec:
    return replace(pod.spec, node_name="")
