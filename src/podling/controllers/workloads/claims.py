"""Whose objects are: what an owner keeps, adopts and releases of the objects that its selector chooses.

    keep     it is ours, by its controller reference
    adopt    it has no controller, is chosen, and neither it nor the owner is being deleted
    release  it is ours and no longer chosen

An object that is released keeps running for whoever adopts it; one that is adopted had lost its owner, or was
made by hand. `Owned` knows the objects of each owner, so that to find them costs what there are of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Generic, TypeVar

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Handler, Key
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.selectors import Selector
from podling.model.types.meta import KubeObject, ObjectMeta, OwnerReference, controller_reference

STRATEGIC = "application/strategic-merge-patch+json"

Fits = Callable[[ObjectMeta], bool]
"""Whether an object can be an owner's, apart from its labels."""

O = TypeVar("O", bound=KubeObject)  # noqa: E741
T = TypeVar("T", bound=KubeObject)


class Claim(Enum):
    KEEP = "keep"
    ADOPT = "adopt"
    RELEASE = "release"
    NONE = "none"


def _any(_: ObjectMeta) -> bool:
    return True


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    return next((ref for ref in meta.owner_references if ref.controller), None)


def claim(owner: ObjectMeta, selector: Selector, one: ObjectMeta, fits: Fits = _any) -> Claim:
    """What `one` is to `owner`, which stands in the same namespace, and may be only what `fits`."""
    controller, chosen = controller_of(one), selector.matches(one.labels) and fits(one)
    if controller is not None and controller.uid != owner.uid:
        return Claim.NONE
    if controller is not None and chosen:
        return Claim.KEEP
    if owner.deletion_timestamp:
        return Claim.NONE
    if controller is not None:
        return Claim.RELEASE
    return Claim.ADOPT if chosen and not one.deletion_timestamp else Claim.NONE


class Owned(Generic[T]):
    """The objects of an informer by the uid of their controller, and those without one by namespace; of all
    those that `keeps` says."""

    def __init__(self, informer: Informer[T], keeps: Callable[[T], bool] = lambda one: True) -> None:
        self._keeps = keeps
        self._by_owner: dict[str, dict[str, T]] = defaultdict(dict)
        self._orphans: dict[str, dict[str, T]] = defaultdict(dict)
        informer.subscribe(self._changed)

    def of(self, owner: KubeObject) -> list[T]:
        """Those whose controller it is."""
        return self.by_uid(owner.metadata.uid)

    def by_uid(self, uid: str) -> list[T]:
        return list(self._by_owner[uid].values()) if uid in self._by_owner else []

    def candidates(self, owner: KubeObject) -> list[T]:
        """Those whose controller it is, and those of its namespace that have none."""
        namespace = owner.metadata.namespace
        orphans = self._orphans[namespace].values() if namespace in self._orphans else ()
        return [*self.of(owner), *orphans]

    def _changed(self, old: T | None, new: T | None) -> None:
        if old is not None:
            index, place = self._place(old)
            index[place].pop(old.metadata.uid, None)
            if not index[place]:
                del index[place]
        if new is not None and self._keeps(new):
            index, place = self._place(new)
            index[place][new.metadata.uid] = new

    def _place(self, one: T) -> tuple[dict[str, dict[str, T]], str]:
        controller = controller_of(one.metadata)
        if controller is None:
            return self._orphans, one.metadata.namespace
        return self._by_owner, controller.uid


class Claims(Generic[T]):
    """The writer of adoptions and releases. With a `finalizer` an object has it as long as it is the
    owner's."""

    def __init__(self, client: Client, finalizer: str = "") -> None:
        self._client = client
        self._finalizers = [finalizer] if finalizer else []

    async def settle(
        self, owner: KubeObject, selector: Selector, found: Iterable[T], fits: Fits = _any
    ) -> list[T]:
        """Those of `found` that are the owner's once what is to be adopted is. Raises StatusError."""
        ours: list[T] = []
        adopts: bool | None = None
        for one in found:
            what = claim(owner.metadata, selector, one.metadata, fits)
            if what is Claim.KEEP:
                ours.append(one)
            elif what is Claim.RELEASE:
                await self._release(owner, one)
            elif what is Claim.ADOPT:
                if adopts is None:
                    adopts = await self._still_there(owner)
                if adopts and (adopted := await self._adopt(owner, one)) is not None:
                    ours.append(adopted)
        return ours

    async def _still_there(self, owner: KubeObject) -> bool:
        """Asked of the server: the informer's owner may be deleted by now, or another of its name."""
        meta = owner.metadata
        try:
            fresh = (await self._client.get(type(owner), meta.name, meta.namespace)).metadata
        except StatusError as error:
            if error.code != 404:
                raise
            return False
        return fresh.uid == meta.uid and not fresh.deletion_timestamp

    async def _adopt(self, owner: KubeObject, one: T) -> T | None:
        taken = {"ownerReferences": [json.to_data(controller_reference(owner))]}
        with_finalizer = {"finalizers": self._finalizers} if self._finalizers else {}
        return await self._patch(one, {**taken, **with_finalizer}, gone=(404,))

    async def _release(self, owner: KubeObject, one: T) -> None:
        freed = {"ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}]}
        without = {"$deleteFromPrimitiveList/finalizers": self._finalizers} if self._finalizers else {}
        # 422: it is another object of the name, or no longer the owner's.
        await self._patch(one, {**freed, **without}, gone=(404, 422))

    async def _patch(self, one: T, metadata: dict[str, object], *, gone: tuple[int, ...]) -> T | None:
        meta = one.metadata
        body = {"metadata": {"uid": meta.uid, **metadata}}
        try:
            return await self._client.patch(type(one), meta.name, meta.namespace, body, patch_type=STRATEGIC)
        except StatusError as error:
            if error.code not in gone:
                raise
            return None


def of_owner(queue: WorkQueue[Key], owners: Informer[O]) -> Handler[T]:
    """A handler that adds the owner of what changed."""

    def changed(old: T | None, new: T | None) -> None:
        for one in (old, new):
            ref = controller_of(one.metadata) if one is not None else None
            owner = owners.get(one.metadata.namespace, ref.name) if one is not None and ref else None
            if ref and owner is not None and owner.metadata.uid == ref.uid:
                queue.add((owner.metadata.namespace, owner.metadata.name))

    return changed


def of_owned(queue: WorkQueue[Key], owners: Informer[O], selector_of: Callable[[O], Selector]) -> Handler[T]:
    """As `of_owner`; of what lost its owner, it adds also those that may adopt it."""
    add_owner: Handler[T] = of_owner(queue, owners)

    def changed(old: T | None, new: T | None) -> None:
        add_owner(old, new)
        if new is None or new.metadata.deletion_timestamp or controller_of(new.metadata) is not None:
            return
        before, now = (old.metadata if old is not None else None), new.metadata
        if before and (before.labels, before.owner_references) == (now.labels, now.owner_references):
            return
        for name, owner in owners.of_namespace(now.namespace).items():
            if selector_of(owner).matches(now.labels):
                queue.add((now.namespace, name))

    return changed
