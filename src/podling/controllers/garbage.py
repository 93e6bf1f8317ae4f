"""The garbage collector (ownerReferences, propagation policies) and the pod garbage collector.

    background   the owner is gone: dependents without another owner are deleted
    foreground   the owner waits, held by a finalizer, until the dependents that block it are gone
    orphan       the owner waits, held by a finalizer, until no dependent names it any more

An index over the shared informers knows the dependents of each owner. Before a deletion the owners are looked
up on the server, because an informer that lags must not cost an object.

Only informer events add keys to the queue, never `reconcile`, so objects that own each other in a circle
cannot keep it busy. Of such a circle deleted in the foreground none would go first; therefore an object whose
dependent already waits stops blocking its owners, as in Kubernetes. An object that owns itself stays, as it
does there.

`PodGC` deletes pods that nobody else will: those of a deleted node, those deleted before they were scheduled,
those deleted on a node that is known to be off, and the oldest terminated ones above a threshold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeGuard

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer, Informers
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.disruption import disrupt
from podling.model.errors import StatusError
from podling.model.rules.placement import OUT_OF_SERVICE
from podling.model.rules.status import is_condition_true, is_terminal
from podling.model.scheme import RESOURCES, by_kind
from podling.model.time import Clock
from podling.model.types.meta import KubeObject, ObjectMeta, OwnerReference
from podling.model.types.node import Node
from podling.model.types.pod import Pod

THRESHOLD = 12_500
"""Terminated pods that are kept."""
QUARANTINE = timedelta(seconds=40)
"""Seconds a node must be gone before its pods are deleted."""
SWEEP: Key = ("", "")
"""The key for checking the number of terminated pods."""
REASON, MESSAGE = "DeletionByPodGC", "PodGC: node no longer exists"
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
"""Finalizers that hold an owner."""
COLLECTED = tuple(r for r in RESOURCES if r.stored and not r.view and r.plural != "events")
"""Types that the collector looks after. Events are left out: they have no owners and own nothing."""


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
            # The oldest terminated pods above the threshold go.
            over = [pod for key in self._over if (pod := self._pods.get(*key)) is not None]
            over.sort(key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
            for pod in over[: max(len(over) - self._threshold, 0)]:
                await self._remove(pod)
            return
        pod = self._pods.get(*key)
        if pod is None:
            return
        node = pod.spec.node_name
        if pod.metadata.deletion_timestamp and (not node or is_off(self._nodes.get("", node))):
            await self._remove(pod)
        elif node and self._nodes.get("", node) is None and await self._is_gone(node):
            await self._remove(pod, orphaned=True)

    async def _is_gone(self, node: str) -> bool:
        """Asks the server, because the informer may lag."""
        try:
            await self._client.get(Node, node)
        except StatusError as error:
            if error.code == 404:
                return True
            raise
        return False

    async def _remove(self, pod: Pod, *, orphaned: bool = False) -> None:
        """It has failed, for those whose finalizers keep it."""
        meta = pod.metadata
        with gone_is_done():
            if orphaned and not is_terminal(pod):
                await disrupt(self._client, pod, REASON, MESSAGE, self._clock.now(), phase="Failed")
            elif not is_terminal(pod):
                status = {"phase": "Failed", "observedGeneration": meta.generation}
                failed = {"metadata": {"uid": meta.uid}, "status": status}
                await self._client.patch(Pod, meta.name, meta.namespace, failed, subresource="status")
            await self._client.delete(Pod, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            for pod in self._pods.items():
                if pod.spec.node_name == old.metadata.name:
                    self._in_quarantine(pod)
        elif is_off(new) and not is_off(old):
            for pod in self._pods.items():
                if pod.spec.node_name == new.metadata.name and pod.metadata.deletion_timestamp:
                    self.queue.add((pod.metadata.namespace, pod.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        key = (pod.metadata.namespace, pod.metadata.name)
        if new is None:
            self._over.discard(key)
            return
        if is_terminal(new) and key not in self._over:
            self._over.add(key)
            if len(self._over) > self._threshold:
                self.queue.add(SWEEP)
        node = new.spec.node_name
        if new.metadata.deletion_timestamp and (not node or is_off(self._nodes.get("", node))):
            self.queue.add(key)
        elif old is None and new.spec.node_name and self._nodes.get("", new.spec.node_name) is None:
            self._in_quarantine(new)

    def _in_quarantine(self, pod: Pod) -> None:
        self.queue.add_after((pod.metadata.namespace, pod.metadata.name), QUARANTINE.total_seconds())


def is_off(node: Node | None) -> TypeGuard[Node]:
    """Whether somebody has said so of a node that is not ready."""
    return (
        node is not None
        and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
        and not is_condition_true(node.status.conditions, "Ready")
    )


class Item(NamedTuple):
    type: type[KubeObject]
    namespace: str
    name: str


class GarbageCollector:
    name = "garbage-collector"

    def __init__(self, client: Client, informers: Informers) -> None:
        self.queue: WorkQueue[Item] = WorkQueue()
        self._client = client
        self._informers = informers
        self._dependents: dict[str, set[Item]] = defaultdict(set)
        self._blocking: dict[str, set[Item]] = defaultdict(set)
        """Those of the dependents that hold an owner which is deleted in the foreground."""
        self._items: dict[str, Item] = {}
        for resource in COLLECTED:
            informers.of(resource.type).subscribe(self._changed)

    async def reconcile(self, key: Item) -> None:
        obj = self._informers.of(key.type).get(key.namespace, key.name)
        if obj is None:
            return
        if obj.metadata.deletion_timestamp and ORPHAN in obj.metadata.finalizers:
            uid = obj.metadata.uid
            for dependent in self._dependents_of(uid):
                await self._disown(dependent, {uid})
            await self._release(obj, ORPHAN)
        elif _waits(obj.metadata):
            if obj.metadata.uid not in self._blocking:
                await self._release(obj, FOREGROUND)
        elif obj.metadata.owner_references and not obj.metadata.deletion_timestamp:
            await self._judge(obj)

    async def _judge(self, obj: KubeObject) -> None:
        """Delete `obj` unless an owner that stays keeps it."""
        references = obj.metadata.owner_references
        owners = [(ref, await self._owner(obj, ref)) for ref in references]
        waiting = {ref.uid for ref, owner in owners if owner is not None and _waits(owner)}
        going = waiting | {ref.uid for ref, owner in owners if owner is None}
        if any(ref.uid not in going for ref in references):
            await self._disown(obj, going)
        elif not waiting or obj.metadata.uid not in self._dependents:
            await self._delete(obj, "")
        elif any(_waits(dependent.metadata) for dependent in self._dependents_of(obj.metadata.uid)):
            # Its change brings it back, after the owners it no longer holds.
            freed = [replace(ref, block_owner_deletion=False) for ref in references]
            await self._patch(obj, {"ownerReferences": [_plain(ref) for ref in freed]})
        else:
            await self._delete(obj, "Foreground")

    async def _owner(self, obj: KubeObject, ref: OwnerReference) -> ObjectMeta | None:
        """The metadata of an owner as it stands on the server; None when it is gone."""
        resource = by_kind(ref.api_version, ref.kind)
        if resource is None or (resource.namespaced and not obj.metadata.namespace):
            # Of a kind nobody here knows, or never to be found: not a reason to delete.
            return ObjectMeta(uid=ref.uid)
        owner: KubeObject | None = None
        if known := self._items.get(ref.uid):
            owner = self._cached(known)
        else:
            namespace = obj.metadata.namespace if resource.namespaced else ""
            with gone_is_done():
                owner = await self._client.get(resource.type, ref.name, namespace)
        return owner.metadata if owner is not None and owner.metadata.uid == ref.uid else None

    def _cached(self, item: Item) -> KubeObject | None:
        return self._informers.of(item.type).get(item.namespace, item.name)

    async def _delete(self, obj: KubeObject, policy: str) -> None:
        meta = obj.metadata
        held = {"Foreground": FOREGROUND in meta.finalizers, "Orphan": ORPHAN in meta.finalizers}
        propagation = policy or next((name for name, holds in held.items() if holds), "Background")
        with gone_is_done():
            await self._client.delete(
                type(obj),
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                propagation=propagation,
            )

    async def _disown(self, obj: KubeObject, owners: set[str]) -> None:
        kept = [ref for ref in obj.metadata.owner_references if ref.uid not in owners]
        if len(kept) < len(obj.metadata.owner_references):
            await self._patch(obj, {"ownerReferences": [_plain(ref) for ref in kept]})

    async def _release(self, obj: KubeObject, finalizer: str) -> None:
        await self._patch(obj, {"finalizers": [one for one in obj.metadata.finalizers if one != finalizer]})

    async def _patch(self, obj: KubeObject, metadata: dict[str, object]) -> None:
        meta = obj.metadata
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        with gone_is_done():
            await self._client.patch(type(obj), meta.name, meta.namespace, {"metadata": {**same, **metadata}})

    def _dependents_of(self, uid: str) -> Iterable[KubeObject]:
        for item in tuple(self._dependents.get(uid, ())):
            dependent = self._cached(item)
            if dependent is not None:
                yield dependent

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            gone = old.metadata
            self._items.pop(gone.uid, None)
            for dependent in self._dependents.pop(gone.uid, ()):
                self.queue.add(dependent)
            self._blocking.pop(gone.uid, None)
            self._unlink(item_of(old), gone.owner_references, ())
            old = None
        if new is None:
            return
        item, meta = item_of(new), new.metadata
        before = old.metadata if old else ObjectMeta()
        self._items[meta.uid] = item
        if meta.owner_references != before.owner_references:
            self._unlink(item, before.owner_references, meta.owner_references)
            for ref in meta.owner_references:
                self._dependents[ref.uid].add(item)
                if ref.block_owner_deletion:
                    self._blocking[ref.uid].add(item)
            if meta.owner_references:
                self.queue.add(item)
        if meta.deletion_timestamp and {ORPHAN, FOREGROUND} & set(meta.finalizers):
            self.queue.add(item)
        if _waits(meta) and not _waits(before):
            for dependent in self._dependents.get(meta.uid, ()):
                self.queue.add(dependent)

    def _unlink(self, item: Item, before: Sequence[OwnerReference], now: Sequence[OwnerReference]) -> None:
        """Remove `item` from the index of owners it no longer has; an owner that waits is reconciled."""
        named, held = {ref.uid for ref in now}, {ref.uid for ref in now if ref.block_owner_deletion}
        for ref in before:
            gone = ref.uid not in named and _drop(self._dependents, ref.uid, item)
            freed = ref.uid not in held and _drop(self._blocking, ref.uid, item)
            if (gone or freed) and ref.uid in self._items:
                self.queue.add(self._items[ref.uid])


def _drop(index: dict[str, set[Item]], uid: str, item: Item) -> bool:
    """Returns whether the item was in the index."""
    items = index.get(uid, set())
    found = item in items
    items.discard(item)
    if not items:
        index.pop(uid, None)
    return found


def item_of(obj: KubeObject) -> Item:
    return Item(type(obj), obj.metadata.namespace, obj.metadata.name)


def _waits(meta: ObjectMeta) -> bool:
    """Whether an object is being deleted in the foreground and waits for its dependents."""
    return bool(meta.deletion_timestamp) and FOREGROUND in meta.finalizers


def _plain(ref: OwnerReference) -> dict[str, object]:
    plain = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
    flags = {"controller": ref.controller, "blockOwnerDeletion": ref.block_owner_deletion}
    return {**plain, **{name: value for name, value in flags.items() if value is not None}}
