"""DaemonSets: a pod on each node that suits, and its revisions.

What to do next is planned in `daemons.py`; this reads and writes. A pod that fails again and again, as one
that the kubelet refuses, is deleted after a delay that grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Deleted, Key, gone_is_done, own_key
from podling.controllers.workloads.claims import STRATEGIC, Claims, Owned, of_owned
from podling.controllers.workloads.daemons import ByNode, Daemon, OnNodes, by_node, manage, roll, status_of
from podling.controllers.workloads.pods import (
    PodWriter,
    available_in,
    in_ending_namespace,
    slowly,
    together,
)
from podling.controllers.workloads.revisions import (
    POD_HASH,
    Revisions,
    hash_of,
    in_order,
    revision_of,
    those_of,
)
from podling.model.errors import StatusError
from podling.model.selectors import Selector, from_label_selector
from podling.model.time import Clock
from podling.model.types.apps import ControllerRevision, DaemonSet, DaemonSetStatus
from podling.model.types.meta import LabelSelector
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.process.waits import Backoff

COMPONENT = "daemonset-controller"
MOST_AT_ONCE = 250
"""Pods created or deleted for one step."""


class FailedDaemons:
    """When a pod that failed on a node may be deleted: at once at first, then ever later, while it fails
    again within twice the longest delay."""

    DELAYS = Backoff(1.0, 900.0)
    FORGOTTEN_AFTER = timedelta(seconds=2 * DELAYS.longest)

    def __init__(self) -> None:
        self._failed: dict[tuple[str, int, str], tuple[int, datetime]] = {}
        """How often and when last, by uid and generation of the DaemonSet and the node; oldest first."""

    def delay(self, owner: DaemonSet, node: str, now: datetime) -> float:
        """Seconds until the pod may go; if it may now, it counts as deleted."""
        key = (owner.metadata.uid, owner.metadata.generation, node)
        while self._failed and next(iter(self._failed.values()))[1] + self.FORGOTTEN_AFTER < now:
            del self._failed[next(iter(self._failed))]
        times, last = self._failed.get(key, (0, now))
        left = self.DELAYS.after(times) - (now - last).total_seconds()
        if left > 0:
            return left
        self._failed.pop(key, None)
        self._failed[key] = times + 1, now
        return 0.0


class DaemonSets:
    name = "daemonset"

    def __init__(
        self,
        client: Client,
        sets: Informer[DaemonSet],
        nodes: Informer[Node],
        pods: Informer[Pod],
        owned_pods: Owned[Pod],
        revisions: Informer[ControllerRevision],
        owned_revisions: Owned[ControllerRevision],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._events = events.by(COMPONENT)
        self._sets, self._nodes = sets, nodes
        self._owned_pods, self._owned_revisions = owned_pods, owned_revisions
        self._claimed_pods, self._claimed_revisions = Claims[Pod](client), Claims[ControllerRevision](client)
        self._pods, self._revisions = PodWriter(client, self._events), Revisions(client)
        self._created, self._deleted = Created(pods), Deleted(pods)
        self._failures = FailedDaemons()
        sets.subscribe(own_key(self.queue))
        pods.subscribe(of_owned(self.queue, sets, _selector))
        revisions.subscribe(of_owned(self.queue, sets, _selector))
        nodes.subscribe(self._node_changed)

    async def reconcile(self, key: Key) -> None:
        lags = self._created.is_behind(key) or self._deleted.is_behind(key)
        owner = self._sets.get(*key)
        if owner is None:
            return
        if owner.spec.selector in (None, LabelSelector()):
            said = "This daemon set is selecting all pods. A non-empty selector is required."
            self._events.warning(owner, "SelectingAll", said)
            return
        if owner.metadata.deletion_timestamp:
            return
        selector = _selector(owner)
        pods = await self._claimed_pods.settle(owner, selector, self._owned_pods.candidates(owner))
        current, old = await self._history(owner, selector, pods)
        now = self._clock.now()
        daemon = Daemon(owner, now, current.metadata.labels.get(POD_HASH, ""))
        nodes = sorted(self._nodes.items(), key=lambda node: node.metadata.name)
        placed = by_node(pods)
        try:
            if lags:
                self.queue.add_after(key, LAG)
            else:
                await self._update(key, daemon, nodes, placed)
                await self._forget(owner, old, pods)
        finally:
            await self._put_status(owner, status_of(daemon, nodes, placed, is_observed=not lags))
        delays = [available_in(pod, owner.spec.min_ready_seconds, now) for pod in pods]
        if later := [delay for delay in delays if delay]:
            self.queue.add_after(key, min(later))

    async def _update(self, key: Key, daemon: Daemon, nodes: Sequence[Node], pods: ByNode) -> None:
        """What is out of place comes before the rolling update. Raises StatusError."""
        (create, delete), ended = manage(daemon, nodes, pods)
        delete = [*delete, *(pod for node, pod in ended if self._may_go(key, daemon.owner, node, pod))]
        if create or delete:
            await self._take(key, daemon, OnNodes(create, delete))
        elif daemon.owner.spec.update_strategy.type == "RollingUpdate":
            await self._take(key, daemon, roll(daemon, nodes, pods))

    def _may_go(self, key: Key, owner: DaemonSet, node: str, pod: Pod) -> bool:
        """Tells of a pod that has ended. One that failed may have to wait."""
        which = f"daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {node}, will try to"
        if pod.status.phase == "Succeeded":
            self._events.normal(owner, "SucceededDaemonPod", f"Found succeeded {which} delete it")
            return True
        if delay := self._failures.delay(owner, node, self._clock.now()):
            self.queue.add_after(key, delay)
            return False
        self._events.warning(owner, "FailedDaemonPod", f"Found failed {which} kill it")
        return True

    async def _take(self, key: Key, daemon: Daemon, step: OnNodes) -> None:
        names = iter(step.create[:MOST_AT_ONCE])

        async def create() -> None:
            try:
                self._created.add(key, await self._pods.create(daemon.owner, daemon.pod(next(names))))
            except StatusError as error:
                if not in_ending_namespace(error):
                    raise

        async def delete(pod: Pod) -> None:
            await self._pods.delete(daemon.owner, pod)
            self._deleted.add(key, pod)

        await slowly(min(len(step.create), MOST_AT_ONCE), create)
        await together([delete(pod) for pod in step.delete[:MOST_AT_ONCE]])

    async def _history(
        self, owner: DaemonSet, selector: Selector, pods: Sequence[Pod]
    ) -> tuple[ControllerRevision, list[ControllerRevision]]:
        """The revision of the template now, which has the highest number, and the others, oldest first."""
        found = self._owned_revisions.candidates(owner)
        revisions = in_order(await self._claimed_revisions.settle(owner, selector, found))
        same = those_of(owner.spec.template, revisions)
        old = [one for one in revisions if one not in same]
        number = max((one.revision for one in old), default=0) + 1
        if not same:
            return await self._snapshot(owner, number), old
        for one in same[:-1]:
            await self._replace(one, same[-1], pods)
        kept = same[-1]
        return await self._revisions.renumber(kept, max(kept.revision, number)), old

    async def _snapshot(self, owner: DaemonSet, number: int) -> ControllerRevision:
        """A new revision. Raises StatusError; when another has its name, the next name is tried then."""
        wanted = revision_of(owner, POD_HASH, number, owner.status.collision_count)
        made = await self._revisions.create(wanted)
        if made is not None:
            return made
        count = (owner.status.collision_count or 0) + 1
        await self._client.update(
            replace(owner, status=replace(owner.status, collision_count=count)), subresource="status"
        )
        name = wanted.metadata.name
        raise StatusError(409, "AlreadyExists", f'controllerrevisions.apps "{name}" already exists')

    async def _replace(self, one: ControllerRevision, kept: ControllerRevision, pods: Sequence[Pod]) -> None:
        """Of two revisions of one template, pods are of the later."""
        before, after = (each.metadata.labels.get(POD_HASH, "") for each in (one, kept))
        for pod in pods:
            if hash_of(pod) == before != after:
                body = {"metadata": {"labels": {POD_HASH: after}}}
                with gone_is_done():
                    await self._client.patch(
                        Pod, pod.metadata.name, pod.metadata.namespace, body, patch_type=STRATEGIC
                    )
        await self._revisions.delete(one)

    async def _forget(self, owner: DaemonSet, old: Sequence[ControllerRevision], pods: Sequence[Pod]) -> None:
        """The oldest beyond `revisionHistoryLimit` that no pod is of."""
        limit = owner.spec.revision_history_limit
        live = set(map(hash_of, pods))
        over = [one for one in old if one.metadata.labels.get(POD_HASH) not in live]
        for one in over[: max(len(old) - (limit if limit is not None else len(old)), 0)]:
            await self._revisions.delete(one)

    async def _put_status(self, owner: DaemonSet, status: DaemonSetStatus) -> None:
        if status != owner.status:
            with gone_is_done():
                await self._client.update(replace(owner, status=status), subresource="status")

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """Of those that a node concerns, if what they ask of it has changed."""
        if old is not None and new is not None and _asked(old) == _asked(new):
            return
        now = self._clock.now()
        for owner in self._sets.items():
            daemon = Daemon(owner, now)
            fits = [daemon.fit(node) if node is not None else None for node in (old, new)]
            if fits[0] != fits[1]:
                self.queue.add((owner.metadata.namespace, owner.metadata.name))


def _asked(node: Node) -> object:
    return node.metadata.labels, node.spec.taints


def _selector(owner: DaemonSet) -> Selector:
    return from_label_selector(owner.spec.selector)
