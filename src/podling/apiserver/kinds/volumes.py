"""PersistentVolumes, and the PersistentVolumeClaims that ask for them.

Nothing of podling's makes volumes or binds them to claims: both are kept for controllers that do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, UNSET, age
from podling.apiserver.kinds.kind import Column, Controlled, Status
from podling.apiserver.kinds.pods.warnings import GONE, claim_warnings, warn_of_term
from podling.apiserver.rules import metadata
from podling.apiserver.rules.volume.claims import (
    STORAGE,
    class_of,
    validate_claim,
    validate_claim_status,
    validate_claim_update,
)
from podling.apiserver.rules.volume.persistent import (
    MOUNT_OPTIONS,
    RECYCLE,
    RETAIN,
    validate_mount_options,
    validate_volume_spec,
    validate_volume_update,
)
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.rules.defaults import FILESYSTEM, default_amounts, default_claim, default_drivers
from podling.model.scheme import resource_of
from podling.model.time import rfc3339
from podling.model.types.persistent_volume import (
    STORAGE_CLASS,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)

PENDING, TERMINATING = "Pending", "Terminating"
MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
RECYCLING = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
    "approach is to use dynamic provisioning."
)
CLASS_FIELD = (STORAGE_CLASS, "v1.8", "storageClassName")
WARNED = ("cephfs", "photon_persistent_disk", "scale_io", "storageos", "glusterfs", "rbd")
"""Sources of old that Kubernetes warns of; of the others only in a pod."""


def _warn_of_annotation(annotations: Mapping[str, str], key: str, since: str, field: str) -> Iterator[str]:
    if key in annotations:
        yield f'metadata.annotations[{key}]: deprecated since {since}; use "{field}" attribute instead'


def _modes(modes: Iterable[str]) -> str:
    given = frozenset(modes)
    return ",".join(short for mode, short in MODES.items() if mode in given)


class PersistentVolumes(Controlled[PersistentVolume]):
    resource = resource_of(PersistentVolume)
    has_generation = False
    returns_deleted = True
    columns = (
        NAME,
        Column("Capacity", description="How much it holds."),
        Column("Access Modes", description="How it can be mounted."),
        Column("Reclaim Policy", description="What becomes of it once its claim is gone."),
        Column("Status", description="Whether it is bound to a claim."),
        Column("Claim", description="The claim that it is for."),
        Column("StorageClass", description="The class that it belongs to."),
        Column("VolumeAttributesClass", description="The class of its changeable attributes."),
        Column("Reason", description="Why it is as it is, in a word."),
        AGE,
        Column("VolumeMode", description="Whether it is a file system or a block device.", priority=1),
    )

    def default(self, obj: PersistentVolume) -> None:
        spec = obj.spec
        spec.persistent_volume_reclaim_policy = spec.persistent_volume_reclaim_policy or RETAIN
        if spec.volume_mode is None:
            spec.volume_mode = FILESYSTEM
        default_amounts(spec.capacity)
        default_drivers(spec)
        obj.status.phase = obj.status.phase or PENDING

    def prepare_create(self, obj: PersistentVolume, now: datetime) -> None:
        obj.status = PersistentVolumeStatus(phase=PENDING, last_phase_transition_time=rfc3339(now))

    def validate(self, obj: PersistentVolume) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False),
            *validate_volume_spec(obj.spec, "spec", obj.metadata.name),
            *validate_mount_options(obj),
        ]

    def validate_changed(self, new: PersistentVolume, old: PersistentVolume) -> list[Cause]:
        # Kubernetes tells each fault of the spec twice.
        twice = 2 * [*validate_volume_spec(new.spec, "spec", new.metadata.name)]
        return [
            *metadata.validate(new.metadata, namespaced=False),
            *twice,
            *validate_mount_options(new),
        ]

    def validate_update(self, new: PersistentVolume, old: PersistentVolume) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_volume_update(new, old),
        ]

    def warnings(self, obj: PersistentVolume) -> list[str]:
        spec, annotations = obj.spec, obj.metadata.annotations
        warned = [
            *_warn_of_annotation(annotations, *CLASS_FIELD),
            *_warn_of_annotation(annotations, MOUNT_OPTIONS, "v1.31", "mountOptions"),
        ]
        if spec.persistent_volume_reclaim_policy == RECYCLE:
            warned.append(RECYCLING)
        needed = spec.node_affinity.required if spec.node_affinity is not None else None
        for i, term in enumerate(needed.node_selector_terms if needed is not None else ()):
            warned += warn_of_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]")
        gone = (GONE[attribute] for attribute in WARNED if getattr(spec, attribute) is not None)
        return [*warned, *(f"spec.{wire}: {why}" for wire, why in gone)]

    def row(self, obj: PersistentVolume, now: datetime) -> list[Any]:
        spec, claim = obj.spec, obj.spec.claim_ref
        class_name = obj.metadata.annotations.get(STORAGE_CLASS, spec.storage_class_name)
        attributes = spec.volume_attributes_class_name
        return [
            obj.metadata.name,
            str(spec.capacity.get(STORAGE, Quantity())),
            _modes(spec.access_modes),
            spec.persistent_volume_reclaim_policy,
            TERMINATING if obj.metadata.deletion_timestamp else obj.status.phase,
            "" if claim is None else f"{claim.namespace}/{claim.name}",
            class_name,
            UNSET if attributes is None else attributes,
            obj.status.reason,
            age(obj.metadata.creation_timestamp, now),
            UNSET if spec.volume_mode is None else spec.volume_mode,
        ]


class PersistentVolumeClaims(Controlled[PersistentVolumeClaim]):
    resource = resource_of(PersistentVolumeClaim)
    has_generation = False
    returns_deleted = True
    subresources = {"status": Status(lambda new, old: validate_claim_status(new.status))}
    columns = (
        NAME,
        Column("Status", description="Whether it has a volume."),
        Column("Volume", description="The volume that it has."),
        Column("Capacity", description="How much that volume holds."),
        Column("Access Modes", description="How that volume can be mounted."),
        Column("StorageClass", description="The class of storage that it asks for."),
        Column("VolumeAttributesClass", description="The class of changeable attributes that it asks for."),
        AGE,
        Column("VolumeMode", description="Whether it is for a file system or a block device.", priority=1),
    )

    def default(self, obj: PersistentVolumeClaim) -> None:
        default_claim(obj.spec)
        obj.status.phase = obj.status.phase or PENDING
        default_amounts(obj.status.capacity, obj.status.allocated_resources)

    def prepare_create(self, obj: PersistentVolumeClaim, now: datetime) -> None:
        obj.status = PersistentVolumeClaimStatus(phase=PENDING)

    def validate(self, obj: PersistentVolumeClaim) -> list[Cause]:
        return validate_claim(obj)

    def validate_update(self, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_claim_update(new, old),
        ]

    def warnings(self, obj: PersistentVolumeClaim) -> list[str]:
        of_class = _warn_of_annotation(obj.metadata.annotations, *CLASS_FIELD)
        return [*of_class, *claim_warnings(obj.spec, "spec.resources")]

    def row(self, obj: PersistentVolumeClaim, now: datetime) -> list[Any]:
        spec, is_bound = obj.spec, bool(obj.spec.volume_name)
        attributes = spec.volume_attributes_class_name
        return [
            obj.metadata.name,
            TERMINATING if obj.metadata.deletion_timestamp else obj.status.phase,
            spec.volume_name,
            str(obj.status.capacity.get(STORAGE, Quantity())) if is_bound else "",
            _modes(obj.status.access_modes) if is_bound else "",
            class_of(obj) or "",
            UNSET if attributes is None else attributes,
            age(obj.metadata.creation_timestamp, now),
            UNSET if spec.volume_mode is None else spec.volume_mode,
        ]
