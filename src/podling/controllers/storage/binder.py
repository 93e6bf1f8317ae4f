"""Binds claims to volumes, and gives back volumes whose claims are gone, as Kubernetes' volume controller.

What is to be done is said by `steps.py`; here it is done. Each write has the version that was read, so of two
binders, or of a binder and a user, one is told 409 and looks again. What was written is remembered until the
informers show it: otherwise the next claim would be given the same volume, and be refused it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Groups, Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.storage.claimers import Claimers
from podling.controllers.storage.steps import LOST, ClaimStep, VolumeStep, step_of_claim, step_of_volume
from podling.model.errors import StatusError
from podling.model.rules import volume_binding as rules
from podling.model.rules.status import is_terminal
from podling.model.types.meta import KubeObject
from podling.model.types.persistent_volume import (
    STORAGE_CLASS,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
)
from podling.model.types.pod import Pod
from podling.model.types.references import ObjectReference
from podling.model.types.storage import StorageClass

T = TypeVar("T", bound=KubeObject)

BINDER = "persistentvolume-controller"
"""Who tells the events."""
NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
IN_TREE = "kubernetes.io/"
"""What Kubernetes' own provisioners begin with, of which there are none here."""
DELETERLESS = 'error getting deleter volume plugin for volume "{}": no {}volume plugin matched'
RECYCLERLESS = "No recycler plugin found for the volume!"


class BinderKey(NamedTuple):
    """The claim of the namespace, or without one the volume."""

    namespace: str
    name: str


class _Newest(Generic[T]):
    """The objects of an informer, and those written since that it does not show yet."""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        self._written: dict[tuple[str, str], T] = {}

    def get(self, namespace: str, name: str) -> T | None:
        written = self._written.get((namespace, name))
        if written is None:
            return self._informer.get(namespace, name)
        if self._informer.has_seen(written.metadata.resource_version):
            del self._written[namespace, name]
            return self._informer.get(namespace, name)
        return written

    def wrote(self, one: T) -> T:
        self._written[one.metadata.namespace, one.metadata.name] = one
        return one


class VolumeBinder:
    name = "persistentvolume-binder-controller"

    def __init__(
        self,
        client: Client,
        claims: Informer[PersistentVolumeClaim],
        volumes: Informer[PersistentVolume],
        classes: Informer[StorageClass],
        pods: Informer[Pod],
        events: EventRecorder,
    ) -> None:
        self.queue: WorkQueue[BinderKey] = WorkQueue()
        self._client, self._events = client, events
        self._classes = classes
        self._claims, self._volumes = _Newest(claims), _Newest(volumes)
        self._free: Groups[PersistentVolume] = Groups(volumes, _class_if_free)
        self._named: Groups[PersistentVolume] = Groups(volumes, _claim_of)
        self._unbound: Groups[PersistentVolumeClaim] = Groups(claims, _class_if_unbound)
        self._waiting: Groups[PersistentVolumeClaim] = Groups(claims, _volume_if_unbound)
        self._claimers = Claimers(pods)
        claims.subscribe(self._claim_changed)
        volumes.subscribe(self._volume_changed)
        classes.subscribe(self._class_changed)

    async def reconcile(self, key: BinderKey) -> None:
        if key.namespace:
            claim = self._claims.get(*key)
            if claim is not None:
                await self._sync_claim(claim)
            return
        volume = self._volumes.get(*key)
        if volume is not None:
            await self._sync_volume(volume)

    async def _sync_claim(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.volume_name
        volume = self._volumes.get("", name) if name else None
        step = step_of_claim(claim, volume)
        if step is ClaimStep.FIND:
            await self._find(claim)
        elif step is ClaimStep.BIND:
            assert volume is not None
            await self._bind(volume, claim)
        elif step in LOST:
            if claim.status.phase != rules.LOST:
                claim = await self._set_claim(claim, rules.LOST, None)
                self._events.warning(claim, LOST[step], step.value)
        else:
            if step is ClaimStep.UNFIT:
                assert volume is not None
                why = f'Cannot bind to requested volume "{name}": {rules.why_unfit(volume, claim)}'
                self._events.warning(claim, "VolumeMismatch", why)
            elif step is ClaimStep.TAKEN:
                told = f'volume "{name}" already bound to a different claim.'
                self._events.warning(claim, "FailedBinding", told)
            await self._set_claim(claim, rules.PENDING, None)

    async def _find(self, claim: PersistentVolumeClaim) -> None:
        chosen = rules.class_of(claim)
        storage_class = self._classes.get("", chosen)
        delayed = rules.delays_binding(claim, storage_class)
        volume = rules.best_match(claim, self._candidates(claim), delayed=delayed)
        if volume is not None:
            await self._bind(volume, claim)
            return
        if await self._gave_class(claim):
            return
        if delayed and rules.SELECTED_NODE not in claim.metadata.annotations:
            self._say_waiting(claim)
        elif chosen:
            await self._ask_provisioner(claim, chosen, storage_class)
            return
        else:
            self._events.normal(claim, "FailedBinding", NO_VOLUME)
        await self._set_claim(claim, rules.PENDING, None)

    def _candidates(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Those that name it, and the free ones of its class."""
        meta = claim.metadata
        for found in (
            self._named.of((meta.namespace, meta.name)),
            self._free.of(rules.class_of(claim)),
        ):
            for one in tuple(found):
                newest = self._volumes.get("", one.metadata.name)
                if newest is not None:
                    yield newest

    async def _gave_class(self, claim: PersistentVolumeClaim) -> bool:
        """A claim that came before there was a default class gets it now."""
        if claim.spec.storage_class_name is not None or STORAGE_CLASS in claim.metadata.annotations:
            return False
        default = rules.default_class(self._classes.items())
        if default is None:
            return False
        spec = replace(claim.spec, storage_class_name=default.metadata.name)
        self._claims.wrote(await self._client.update(replace(claim, spec=spec)))
        return True

    def _say_waiting(self, claim: PersistentVolumeClaim) -> None:
        meta = claim.metadata
        users = sorted(
            pod.metadata.name for pod in self._claimers.of(meta.namespace, meta.name) if not is_terminal(pod)
        )
        if users:
            whose = f"pod {users[0]}" if len(users) == 1 else f"pods {','.join(users)}"
            self._events.normal(claim, "WaitForPodScheduled", f"waiting for {whose} to be scheduled")
        else:
            told = "waiting for first consumer to be created before binding"
            self._events.normal(claim, "WaitForFirstConsumer", told)

    async def _ask_provisioner(
        self, claim: PersistentVolumeClaim, chosen: str, storage_class: StorageClass | None
    ) -> None:
        if storage_class is None:
            missing = f'storageclass.storage.k8s.io "{chosen}" not found'
            self._events.warning(claim, "ProvisioningFailed", missing)
            return
        provisioner = storage_class.provisioner
        if provisioner.startswith(IN_TREE):
            missing = f"no volume plugin matched name: {provisioner}"
            self._events.warning(claim, "ProvisioningFailed", missing)
            return
        annotations = claim.metadata.annotations
        if any(annotations.get(key) != provisioner for key in rules.PROVISIONERS):
            annotations = {**annotations, **dict.fromkeys(rules.PROVISIONERS, provisioner)}
            claim = replace(claim, metadata=replace(claim.metadata, annotations=annotations))
            claim = self._claims.wrote(await self._client.update(claim))
        told = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or "
            "manually by the system administrator. If volume creation is delayed, please verify that the "
            "provisioner is running and correctly registered."
        )
        self._events.normal(claim, "ExternalProvisioning", told)

    async def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """The four writes, as far as they have not been made."""
        meta, ref = claim.metadata, volume.spec.claim_ref
        if ref is None or not rules.is_bound_to(volume, claim) or not ref.uid:
            annotations = volume.metadata.annotations
            if not rules.is_bound_to(volume, claim):
                annotations = {**annotations, rules.BOUND_BY_CONTROLLER: "yes"}
            mine = ObjectReference(
                kind=claim.KIND,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                api_version=claim.API_VERSION,
                resource_version=meta.resource_version,
            )
            volume = self._volumes.wrote(
                await self._client.update(
                    replace(
                        volume,
                        metadata=replace(volume.metadata, annotations=annotations),
                        spec=replace(volume.spec, claim_ref=mine),
                    )
                )
            )
        volume = await self._set_volume(volume, rules.BOUND, "")
        annotations, spec = meta.annotations, claim.spec
        if spec.volume_name != volume.metadata.name:
            annotations = {**annotations, rules.BOUND_BY_CONTROLLER: "yes"}
            spec = replace(spec, volume_name=volume.metadata.name)
        if rules.BIND_COMPLETED not in annotations:
            annotations = {**annotations, rules.BIND_COMPLETED: "yes"}
        if annotations != meta.annotations or spec != claim.spec:
            bound = replace(claim, metadata=replace(meta, annotations=annotations), spec=spec)
            claim = self._claims.wrote(await self._client.update(bound))
        await self._set_claim(claim, rules.BOUND, volume)

    async def _set_claim(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None
    ) -> PersistentVolumeClaim:
        status = replace(claim.status, phase=phase)
        if volume is None:
            status.access_modes, status.capacity = [], {}
        else:
            _show(status, claim, volume)
        if status == claim.status:
            return claim
        wanted = replace(claim, status=status)
        return self._claims.wrote(await self._client.update(wanted, subresource="status"))

    async def _sync_volume(self, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        claim = await self._named_claim(ref) if ref is not None and ref.uid else None
        step = step_of_volume(volume, claim)
        if step is VolumeStep.OFFER:
            await self._set_volume(volume, rules.AVAILABLE, "")
        elif step is VolumeStep.KEEP:
            await self._set_volume(volume, rules.BOUND, "")
        elif step in (VolumeStep.RELEASE, VolumeStep.DISCARD):
            if volume.status.phase not in (rules.RELEASED, rules.FAILED):
                volume = await self._set_volume(volume, rules.RELEASED, "")
            await self._reclaim(volume)
        elif step is VolumeStep.FREE:
            await self._free_again(volume)
        else:
            assert claim is not None
            if step is VolumeStep.UNLIKE:
                unlike = "due to incompatible volumeMode."
                names = f'"{volume.metadata.name}"', f'"{claim.metadata.name}"'
                to_volume = (
                    f"Cannot bind PersistentVolume to requested PersistentVolumeClaim {names[1]} {unlike}"
                )
                to_claim = (
                    f"Cannot bind PersistentVolume {names[0]} to requested PersistentVolumeClaim {unlike}"
                )
                self._events.warning(volume, "VolumeMismatch", to_volume)
                self._events.warning(claim, "VolumeMismatch", to_claim)
                return
            self.queue.add(BinderKey(claim.metadata.namespace, claim.metadata.name))

    async def _named_claim(self, ref: ObjectReference) -> PersistentVolumeClaim | None:
        """The claim that a volume names; asked of the server before it is said to be gone."""
        known = self._claims.get(ref.namespace, ref.name)
        if known is not None and known.metadata.uid == ref.uid:
            return known
        try:
            found = await self._client.get(PersistentVolumeClaim, ref.name, ref.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return None
        return found if found.metadata.uid == ref.uid else None

    async def _reclaim(self, volume: PersistentVolume) -> None:
        policy, made_by = (
            volume.spec.persistent_volume_reclaim_policy,
            volume.metadata.annotations.get(rules.PROVISIONED_BY, ""),
        )
        # What a driver has made is its provisioner's to delete.
        is_of_driver = volume.spec.csi is not None or (made_by and not made_by.startswith(IN_TREE))
        if policy == rules.DELETE and not is_of_driver:
            spec = volume.spec
            known = spec.nfs or spec.local or spec.host_path
            told = DELETERLESS.format(volume.metadata.name, "deletable " if known else "")
            await self._fail(volume, "VolumeFailedDelete", told)
        elif policy == rules.RECYCLE:
            await self._fail(volume, "VolumeFailedRecycle", RECYCLERLESS)

    async def _fail(self, volume: PersistentVolume, reason: str, message: str) -> None:
        if volume.status.phase != rules.FAILED:
            volume = await self._set_volume(volume, rules.FAILED, message)
            self._events.warning(volume, reason, message)

    async def _free_again(self, volume: PersistentVolume) -> None:
        """Its claim has another volume: who was bound by hand waits for the claim of that name, who was
        chosen here is anybody's."""
        meta, ref = volume.metadata, volume.spec.claim_ref
        assert ref is not None
        if rules.BOUND_BY_CONTROLLER in meta.annotations:
            left = {key: value for key, value in meta.annotations.items() if key != rules.BOUND_BY_CONTROLLER}
            meta, ref = replace(meta, annotations=left), None
        else:
            ref = replace(ref, uid="")
        freed = replace(volume, metadata=meta, spec=replace(volume.spec, claim_ref=ref))
        volume = self._volumes.wrote(await self._client.update(freed))
        await self._set_volume(volume, rules.AVAILABLE, "")

    async def _set_volume(self, volume: PersistentVolume, phase: str, message: str) -> PersistentVolume:
        if volume.status.phase == phase:
            return volume
        wanted = replace(volume, status=replace(volume.status, phase=phase, message=message))
        return self._volumes.wrote(await self._client.update(wanted, subresource="status"))

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        one = new or old
        assert one is not None
        meta = one.metadata
        if new is not None:
            self.queue.add(BinderKey(meta.namespace, meta.name))
        else:
            for volume in self._named.of((meta.namespace, meta.name)):
                self.queue.add(BinderKey("", volume.metadata.name))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        one = new or old
        assert one is not None
        self.queue.add(BinderKey("", one.metadata.name))
        ref = one.spec.claim_ref
        if ref is not None:
            self.queue.add(BinderKey(ref.namespace, ref.name))
        if old is not None and old.spec.claim_ref is not None:
            self.queue.add(BinderKey(old.spec.claim_ref.namespace, old.spec.claim_ref.name))
        woken = [self._waiting.of(one.metadata.name)]
        if new is not None and new.spec.claim_ref is None and new.status.phase == rules.AVAILABLE:
            woken.append(self._unbound.of(rules.class_of(new)))
        for claim in (claim for claims in woken for claim in claims):
            self.queue.add(BinderKey(claim.metadata.namespace, claim.metadata.name))

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        one = new or old
        assert one is not None
        for name in ("", one.metadata.name):
            for claim in self._unbound.of(name):
                self.queue.add(BinderKey(claim.metadata.namespace, claim.metadata.name))


def _show(
    status: PersistentVolumeClaimStatus, claim: PersistentVolumeClaim, volume: PersistentVolume
) -> None:
    """What the status of a bound claim says of its volume. The size is not said again: a claim that grows has
    it before its file system does."""
    status.access_modes = list(volume.spec.access_modes)
    if claim.status.phase != rules.BOUND:
        status.capacity = {rules.STORAGE: rules.size(volume)}
        status.current_volume_attributes_class_name = volume.spec.volume_attributes_class_name


def _class_if_free(volume: PersistentVolume) -> str | None:
    return rules.class_of(volume) if volume.spec.claim_ref is None else None


def _claim_of(volume: PersistentVolume) -> tuple[str, str] | None:
    ref = volume.spec.claim_ref
    return (ref.namespace, ref.name) if ref is not None else None


def _class_if_unbound(claim: PersistentVolumeClaim) -> str | None:
    return None if claim.spec.volume_name else rules.class_of(claim)


def _volume_if_unbound(claim: PersistentVolumeClaim) -> str | None:
    return claim.spec.volume_name or None
