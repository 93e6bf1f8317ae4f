"""Keeps claims, volumes and classes of attributes while they are in use.

The API server gives each of them a finalizer (`StorageObjectInUseProtection`). The controllers here take it
from those that were deleted once nobody uses them any more, and give it to those that came without.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.rules.references import volume_claims_of
from podling.model.types.meta import KubeObject
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import VolumeAttributesClass

T = TypeVar("T", bound=KubeObject)


class _Protection(Generic[T]):
    name: str
    finalizer: str

    def __init__(self, client: Client, objects: Informer[T]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._objects = client, objects
        objects.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        obj = self._objects.get(*key)
        if obj is None:
            return
        meta = obj.metadata
        has, goes = self.finalizer in meta.finalizers, bool(meta.deletion_timestamp)
        if has != goes or (goes and await self.is_used(obj)):
            return
        finalizers = [one for one in meta.finalizers if one != self.finalizer]
        if not goes:
            finalizers.append(self.finalizer)
        with gone_is_done():
            await self._client.update(replace(obj, metadata=replace(meta, finalizers=finalizers)))

    async def is_used(self, obj: T) -> bool:
        raise NotImplementedError


class ClaimProtection(_Protection[PersistentVolumeClaim]):
    name = "persistentvolumeclaim-protection"
    finalizer = "kubernetes.io/pvc-protection"

    def __init__(self, client: Client, claims: Informer[PersistentVolumeClaim], pods: Informer[Pod]) -> None:
        super().__init__(client, claims)
        pods.subscribe(self._pod_changed)

    async def is_used(self, obj: PersistentVolumeClaim) -> bool:
        # Not of the informer, which may not have seen the last pod yet.
        pods = await self._client.list(Pod, obj.metadata.namespace)
        return any(obj.metadata.name in volume_claims_of(pod) for pod in pods.items if pod.spec.node_name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            for claim in volume_claims_of(old):
                self.queue.add((old.metadata.namespace, claim))


class VolumeProtection(_Protection[PersistentVolume]):
    name = "persistentvolume-protection"
    finalizer = "kubernetes.io/pv-protection"

    async def is_used(self, obj: PersistentVolume) -> bool:
        return obj.status.phase == "Bound"


class AttributesClassProtection(_Protection[VolumeAttributesClass]):
    name = "volumeattributesclass-protection"
    finalizer = "kubernetes.io/vac-protection"

    def __init__(
        self,
        client: Client,
        classes: Informer[VolumeAttributesClass],
        claims: Informer[PersistentVolumeClaim],
        volumes: Informer[PersistentVolume],
    ) -> None:
        super().__init__(client, classes)
        claims.subscribe(self._claim_changed)
        volumes.subscribe(self._volume_changed)

    async def is_used(self, obj: VolumeAttributesClass) -> bool:
        name = obj.metadata.name
        claims = await self._client.list(PersistentVolumeClaim)
        volumes = await self._client.list(PersistentVolume)
        return any(name in _classes_of(claim) for claim in claims.items) or any(
            name == volume.spec.volume_attributes_class_name for volume in volumes.items
        )

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        for name in _classes_of(old) if old is not None else ():
            self.queue.add(("", name))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if old is not None and old.spec.volume_attributes_class_name:
            self.queue.add(("", old.spec.volume_attributes_class_name))


def _classes_of(claim: PersistentVolumeClaim) -> set[str]:
    """The names of the classes that a claim has, asks for, or is on its way to."""
    modify = claim.status.modify_volume_status
    named = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        modify and modify.target_volume_attributes_class_name,
    )
    return {name for name in named if name}
