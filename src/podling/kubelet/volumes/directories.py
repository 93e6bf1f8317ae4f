"""Makes volumes of directories of this node, for claims of classes whose provisioner is `PROVISIONER`.

    claim, and the node chosen for it ──▶ <root>/pvc-<uid of the claim> ──▶ PersistentVolume (`local`)
    claim that asks for more          ──▶ capacity of the volume ──▶ capacity of the claim
    volume released, policy Delete    ──▶ directory removed ──▶ finalizer taken, volume deleted

A directory is named by what the API server gives, the uid of the claim, and by nothing that a user writes. It
is made before its volume, and removed before it: what a kill leaves is found again by its name. What a volume
says of its path is compared with where its directory must be, and another is never touched.

Every container that mounts it may write it, whatever its user, as with emptyDir; nobody else of the machine
comes through the root, which is the kubelet's.

Where the file system of the root has project quotas, a directory cannot take more than its claim asked for;
elsewhere it can, which an event says.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer, Informers
from podling.client.workqueue import WorkQueue
from podling.kubelet.files.tree import remove
from podling.kubelet.host.size_limits import SizeLimits
from podling.model.errors import StatusError
from podling.model.rules.volume_binding import (
    BLOCK,
    BOUND,
    DEFAULT_CLASS,
    DELETE,
    FILESYSTEM,
    PROVISIONED_BY,
    PROVISIONERS,
    SELECTED_NODE,
    STORAGE,
    WAITS,
    ZERO,
    class_of,
    default_class,
    is_bound,
    is_bound_to,
    requested,
    size,
)
from podling.model.types.meta import ObjectMeta
from podling.model.types.persistent_volume import (
    LocalVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from podling.model.types.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podling.model.types.references import ObjectReference
from podling.model.types.storage import StorageClass

PROVISIONER = "podling.io/directory"
CLASS = "directory"
"""The class that is made where there is none of the name."""
FINALIZER = "podling.io/directory"
"""Of a volume, until its directory is gone."""
HOSTNAME = "kubernetes.io/hostname"
MODE = 0o777
NAMED = re.compile(r"pvc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FRESH = "."
"""Before the name of a directory that is not complete yet."""
BEGIN = ("", "")
WORKERS = 4
"""A large directory that is removed does not hold up the others."""


class RefusedError(Exception):
    """A volume that cannot be made of a directory."""


class DirectoryProvisioner:
    """`root` has the directories; the informers are run by others, and have synced when it reconciles. `node`
    is the name of this node and the value of its label `kubernetes.io/hostname`."""

    name = "directory-provisioner"

    def __init__(
        self,
        client: Client,
        informers: Informers,
        events: EventRecorder,
        root: Path,
        node: str,
        limits: SizeLimits,
    ) -> None:
        self.queue: WorkQueue[tuple[str, str]] = WorkQueue()
        """Namespace and name of a claim, without a namespace of a volume; `BEGIN` comes first."""
        self.queue.add(BEGIN)
        self._client, self._events, self._root, self._node = client, events, root, node
        self._limits = limits
        self._claims = informers.of(PersistentVolumeClaim)
        self._volumes: Informer[PersistentVolume] = informers.of(PersistentVolume)
        self._classes = informers.of(StorageClass)
        self._claims.subscribe(self._claim_changed)
        self._volumes.subscribe(self._volume_changed)

    async def _begin(self) -> None:
        """Have the root and the class, and remove what was begun for claims that are gone. Raises OSError and
        StatusError."""
        await asyncio.to_thread(self._root.mkdir, mode=0o700, parents=True, exist_ok=True)
        if self._classes.get("", CLASS) is None:
            others = default_class(self._classes.items())
            marks = {DEFAULT_CLASS[0]: "true"} if others is None else {}
            with suppress_existing():
                await self._client.create(
                    StorageClass(
                        metadata=ObjectMeta(name=CLASS, annotations=marks),
                        provisioner=PROVISIONER,
                        reclaim_policy=DELETE,
                        volume_binding_mode=WAITS,
                        allow_volume_expansion=True,
                    )
                )
        known = {volume.metadata.name for volume in self._volumes.items()}
        known |= {directory_of(claim) for claim in self._claims.items()}
        await asyncio.to_thread(self._remove_begun, known)

    async def reconcile(self, key: tuple[str, str]) -> None:
        if key == BEGIN:
            await self._begin()
        elif not key[0]:
            volume = self._volumes.get(*key)
            if volume is not None and self._is_ours(volume):
                await self._give_back(volume)
        elif (claim := self._claims.get(*key)) is not None:
            if is_bound(claim):
                await self._grow(claim)
            else:
                await self._provide(claim)

    async def _grow(self, claim: PersistentVolumeClaim) -> None:
        """First its limit, if it has one, then what is said of the volume, then of the claim, so that a kill
        in between leaves a claim that asks again."""
        volume, wanted = self._volumes.get("", claim.spec.volume_name), requested(claim)
        if volume is None or not self._is_ours(volume) or not is_bound_to(volume, claim):
            return
        if size(volume) < wanted:
            if (place := self._place_of(volume)) is not None:
                with suppress(FileNotFoundError):
                    await asyncio.to_thread(self._limits.limit, place, wanted.value())
            capacity = {**volume.spec.capacity, STORAGE: wanted}
            await self._client.update(replace(volume, spec=replace(volume.spec, capacity=capacity)))
        if claim.status.capacity.get(STORAGE, wanted) < wanted:
            status = replace(claim.status, capacity={**claim.status.capacity, STORAGE: wanted})
            await self._client.update(replace(claim, status=status), subresource="status")
            self._events.normal(claim, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _provide(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name or claim.metadata.deletion_timestamp:
            return
        storage_class = self._classes.get("", class_of(claim))
        if storage_class is None or storage_class.provisioner != PROVISIONER:
            return
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        asked = claim.metadata.annotations.get(PROVISIONERS[1]) == PROVISIONER
        if chosen == self._node or (not chosen and asked and storage_class.volume_binding_mode != WAITS):
            await self._make(claim, storage_class)

    async def _make(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        name = directory_of(claim)
        try:
            check(claim, storage_class)
        except RefusedError as error:
            why = f'failed to provision volume with StorageClass "{storage_class.metadata.name}": {error}'
            self._events.warning(claim, "ProvisioningFailed", why)
            await self._let_go(claim)
            return
        place, asked = self._root / name, requested(claim)
        is_limited = await asyncio.to_thread(make_directory, place, asked.value(), self._limits)
        try:
            await self._client.create(volume_for(claim, storage_class, place, self._node))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            return
        self._events.normal(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        if not is_limited:
            told = (
                f"{name} is a directory on a file system without project quotas: nothing keeps it from "
                f"growing beyond the {asked} that were asked for"
            )
            self._events.warning(claim, "SizeNotEnforced", told)

    async def _let_go(self, claim: PersistentVolumeClaim) -> None:
        """The scheduler shall not wait for it."""
        annotations = {k: v for k, v in claim.metadata.annotations.items() if k != SELECTED_NODE}
        if annotations != claim.metadata.annotations:
            meta = replace(claim.metadata, annotations=annotations)
            await self._client.update(replace(claim, metadata=meta))

    async def _give_back(self, volume: PersistentVolume) -> None:
        """Raises OSError and StatusError."""
        meta, spec = volume.metadata, volume.spec
        if volume.status.phase not in ("Released", "Failed") and not (
            meta.deletion_timestamp and volume.status.phase != BOUND
        ):
            return
        if spec.persistent_volume_reclaim_policy == DELETE:
            place = self._place_of(volume)
            if place is None:
                told = f"the volume is not at {self._root / meta.name}: nothing is removed"
                self._events.warning(volume, "VolumeFailedDelete", told)
                return
            try:
                await asyncio.to_thread(self._remove, place)
            except OSError as error:
                self._events.warning(volume, "VolumeFailedDelete", str(error))
                raise
            if not meta.deletion_timestamp:
                with suppress_gone():
                    await self._client.delete(PersistentVolume, meta.name, uid=meta.uid)
        elif not meta.deletion_timestamp:
            return
        await self._release(meta.name, meta.uid)

    async def _release(self, name: str, uid: str) -> None:
        with suppress_gone():
            volume = await self._client.get(PersistentVolume, name, "")
            meta = volume.metadata
            if meta.uid == uid and FINALIZER in meta.finalizers:
                left = [one for one in meta.finalizers if one != FINALIZER]
                await self._client.update(replace(volume, metadata=replace(meta, finalizers=left)))

    def _is_ours(self, volume: PersistentVolume) -> bool:
        made = volume.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER
        return made and volume.spec.node_affinity == affinity_to(self._node)

    def _place_of(self, volume: PersistentVolume) -> Path | None:
        """None if what the volume says is not where its directory must be."""
        name, local = volume.metadata.name, volume.spec.local
        place = self._root / name
        is_there = NAMED.fullmatch(name) and local is not None and local.path == str(place)
        return place if is_there else None

    def _remove(self, place: Path) -> None:
        self._limits.free(place)
        remove(place)

    def _remove_begun(self, known: set[str]) -> None:
        """Directories whose volumes were never made: they are empty."""
        for name in os.listdir(self._root):
            made = name.removeprefix(FRESH)
            place = self._root / name
            if NAMED.fullmatch(made) and made not in known:
                with suppress(OSError):
                    if not os.listdir(place):
                        self._limits.free(place)
                        place.rmdir()

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and (
            not new.spec.volume_name or new.status.capacity.get(STORAGE, ZERO) < requested(new)
        ):
            self.queue.add((new.metadata.namespace, new.metadata.name))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if new is not None and self._is_ours(new):
            self.queue.add(("", new.metadata.name))


def check(claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
    """Raises RefusedError."""
    if claim.spec.volume_mode == BLOCK:
        raise RefusedError("a directory is no block device")
    if claim.spec.selector is not None:
        raise RefusedError("claim Selector is not supported")
    if claim.spec.data_source is not None or claim.spec.data_source_ref is not None:
        raise RefusedError("a directory cannot be made of other data")
    for name in storage_class.parameters:
        raise RefusedError(f'invalid parameter "{name}"')


def make_directory(place: Path, size: int, limits: SizeLimits) -> bool:
    """Whether it can take no more than `size`, in bytes. Idempotent: one that is there keeps what it is.
    Raises OSError."""
    if place.is_dir():
        return limits.limit(place, size)
    fresh = place.with_name(f"{FRESH}{place.name}")
    with suppress(FileExistsError):
        fresh.mkdir(mode=0o700)
    is_limited = limits.limit(fresh, size)
    # mkdir's own mode is cut by the umask.
    fresh.chmod(MODE)
    fresh.rename(place)
    return is_limited


def directory_of(claim: PersistentVolumeClaim) -> str:
    """The name of its volume, and of the directory."""
    return f"pvc-{claim.metadata.uid}"


def affinity_to(node: str) -> VolumeNodeAffinity:
    wanted = NodeSelectorRequirement(key=HOSTNAME, operator="In", values=[node])
    return VolumeNodeAffinity(
        required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[wanted])])
    )


def volume_for(
    claim: PersistentVolumeClaim, storage_class: StorageClass, place: Path, node: str
) -> PersistentVolume:
    meta = claim.metadata
    return PersistentVolume(
        metadata=ObjectMeta(
            name=place.name, annotations={PROVISIONED_BY: PROVISIONER}, finalizers=[FINALIZER]
        ),
        spec=PersistentVolumeSpec(
            capacity={STORAGE: requested(claim)},
            access_modes=list(claim.spec.access_modes),
            claim_ref=ObjectReference(
                kind=claim.KIND,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                api_version=claim.API_VERSION,
                resource_version=meta.resource_version,
            ),
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or DELETE,
            storage_class_name=storage_class.metadata.name,
            volume_mode=FILESYSTEM,
            local=LocalVolumeSource(path=str(place)),
            node_affinity=affinity_to(node),
        ),
    )


class _Suppress:
    """Ignores what the API server says of an object that is as it should be."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, StatusError) and error.reason == self._reason


def suppress_existing() -> _Suppress:
    return _Suppress("AlreadyExists")


def suppress_gone() -> _Suppress:
    return _Suppress("NotFound")
