"""Garbage collection: what belongs to nothing any more goes too (ownerReferences, propagation policies).

    background   the owner is gone: its dependents, which now belong to nobody, are deleted
    foreground   the owner waits, held by a finalizer, until the dependents that block it are gone
    orphan       the owner waits, held by a finalizer, until no dependent names it any more

Who belongs to whom is kept as an index over the shared informers. Before anything is deleted the owners are
looked up on the server: an informer that lags must not cost an object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from podling.client.client import Client
from podling.client.informers import Informers
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import gone_is_done
from podling.model.meta import KubeObject, ObjectMeta, OwnerReference
from podling.model.scheme import RESOURCES, Resource, by_kind

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
COLLECTED = tuple(resource for resource in RESOURCES if resource.stored and resource.plural != "events")
"""Events own nothing, and what they are about does not own them."""


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
        self._items: dict[str, Item] = {}
        for resource in COLLECTED:
            informers.of(resource.type).subscribe(self._changed)

    async def reconcile(self, key: Item) -> None:
        obj = self._informers.of(key.type).get(key.namespace, key.name)
        if obj is None:
            return
        if obj.metadata.deletion_timestamp and ORPHAN in obj.metadata.finalizers:
            await self._orphan_dependents(obj)
        elif _waits(obj.metadata):
            await self._delete_dependents_first(obj)
        elif obj.metadata.owner_references and not obj.metadata.deletion_timestamp:
            await self._judge(obj)

    async def _orphan_dependents(self, owner: KubeObject) -> None:
        uid = owner.metadata.uid
        for dependent in self._dependents_of(uid):
            await self._disown(dependent, {uid})
        await self._release(owner, ORPHAN)

    async def _delete_dependents_first(self, owner: KubeObject) -> None:
        blocking = [one for one in self._dependents_of(owner.metadata.uid) if _blocks(one, owner)]
        if not blocking:
            await self._release(owner, FOREGROUND)
        for dependent in blocking:
            self.queue.add(item_of(dependent))

    async def _judge(self, obj: KubeObject) -> None:
        """Delete `obj` unless an owner that stays keeps it."""
        owners = [(ref, await self._owner(obj, ref)) for ref in obj.metadata.owner_references]
        gone = {ref.uid for ref, owner in owners if owner is None}
        waiting = {ref.uid for ref, owner in owners if owner is not None and _waits(owner)}
        if len(gone | waiting) < len(owners):
            if gone | waiting:
                await self._disown(obj, gone | waiting)
            return
        foreground = bool(waiting) and bool(self._dependents.get(obj.metadata.uid))
        await self._delete(obj, "Foreground" if foreground else "")

    async def _owner(self, obj: KubeObject, ref: OwnerReference) -> ObjectMeta | None:
        """The metadata of an owner as it stands on the server; None when it is gone."""
        resource = by_kind(ref.api_version, ref.kind)
        if resource is None or (resource.namespaced and not obj.metadata.namespace):
            # Of a kind nobody here knows, or never to be found: not a reason to delete.
            return ObjectMeta(uid=ref.uid)
        known = self._items.get(ref.uid)
        owner = self._cached(known) if known else await self._fetch(resource, obj, ref)
        return owner.metadata if owner is not None and owner.metadata.uid == ref.uid else None

    def _cached(self, item: Item) -> KubeObject | None:
        return self._informers.of(item.type).get(item.namespace, item.name)

    async def _fetch(self, resource: Resource, obj: KubeObject, ref: OwnerReference) -> KubeObject | None:
        namespace = obj.metadata.namespace if resource.namespaced else ""
        with gone_is_done():
            return await self._client.get(resource.type, ref.name, namespace)
            return None

    async def _delete(self, obj: KubeObject, policy: str) -> None:
        meta = obj.metadata
        held = {"Foreground": FOREGROUND in meta.finalizers, "Orphan": ORPHAN in meta.finalizers}
        propagation = policy or next((name for name, holds in held.items() if holds), "Background")
        with gone_is_done():
            await self._client.delete(
                type(obj), meta.name, meta.namespace, uid=meta.uid, propagation=propagation
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
            self._forget(old)
            old = None
        if new is not None:
            self._note(old, new)

    def _forget(self, gone: KubeObject) -> None:
        meta = gone.metadata
        self._items.pop(meta.uid, None)
        for dependent in self._dependents.pop(meta.uid, ()):
            self.queue.add(dependent)
        for ref in meta.owner_references:
            self._unlink(ref.uid, item_of(gone))

    def _note(self, old: KubeObject | None, new: KubeObject) -> None:
        item, meta = item_of(new), new.metadata
        self._items[meta.uid] = item
        before = {ref.uid for ref in old.metadata.owner_references} if old else set()
        now = {ref.uid for ref in meta.owner_references}
        for uid in before - now:
            self._unlink(uid, item)
        for uid in now - before:
            self._dependents[uid].add(item)
        if now - before or (meta.deletion_timestamp and {ORPHAN, FOREGROUND} & set(meta.finalizers)):
            self.queue.add(item)
        if _waits(meta):
            for dependent in self._dependents.get(meta.uid, ()):
                self.queue.add(dependent)

    def _unlink(self, owner: str, item: Item) -> None:
        """One dependent less; an owner that waits for that is looked at again."""
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.discard(item)
            if not dependents:
                del self._dependents[owner]
        if owner in self._items:
            self.queue.add(self._items[owner])


def item_of(obj: KubeObject) -> Item:
    return Item(type(obj), obj.metadata.namespace, obj.metadata.name)


def _waits(meta: ObjectMeta) -> bool:
    """Whether an object being deleted waits for its dependents to go first."""
    return bool(meta.deletion_timestamp) and FOREGROUND in meta.finalizers


def _blocks(dependent: KubeObject, owner: KubeObject) -> bool:
    references = dependent.metadata.owner_references
    return any(ref.uid == owner.metadata.uid and ref.block_owner_deletion for ref in references)


def _plain(ref: OwnerReference) -> dict[str, object]:
    plain = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
    flags = {"controller": ref.controller, "blockOwnerDeletion": ref.block_owner_deletion}
    return {**plain, **{name: value for name, value in flags.items() if value is not None}}
