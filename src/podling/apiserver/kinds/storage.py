"""The kinds of storage.k8s.io: classes of storage and of attributes, CSI drivers, the drivers of each
node, how much storage there is where, and which volumes are attached to which nodes.

Of these, podling makes volumes by classes; the others are stored, and served to programs that do.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar

from podling.apiserver.kinds.columns import AGE, NAME, UNPRINTED, UNSET, age, joined
from podling.apiserver.kinds.kind import Column, Kind, Status
from podling.apiserver.kinds.pods.warnings import DEPRECATED_LABELS
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import IMMUTABLE, forbidden, internal, invalid
from podling.apiserver.rules.storage import (
    validate_attachment,
    validate_attachment_status,
    validate_attributes_class,
    validate_capacity,
    validate_driver,
    validate_drivers,
    validate_drivers_update,
    validate_storage_class,
)
from podling.model.codec.fields import told_empty, wire_name
from podling.model.errors import Cause
from podling.model.rules.volume_binding import DEFAULT_CLASS
from podling.model.scheme import resource_of
from podling.model.types.meta import KubeObject
from podling.model.types.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentStatus,
    VolumeAttributesClass,
)

T = TypeVar("T", bound=KubeObject)

TOKENS_IN_ATTRIBUTES = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)


class _Storage(Kind[T]):
    def validate(self, obj: T) -> list[Cause]:
        namespaced = self.resource.namespaced
        return [*metadata.validate(obj.metadata, namespaced=namespaced), *self.validate_fields(obj)]

    def validate_fields(self, obj: T) -> Iterator[Cause]:
        raise NotImplementedError

    def validate_update(self, new: T, old: T) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *self.validate_change(new, old),
        ]

    def validate_change(self, new: T, old: T) -> Iterator[Cause]:
        raise NotImplementedError


def _immutable(new: Any, old: Any, path: str, *attributes: str) -> Iterator[Cause]:
    for attribute in attributes:
        value = getattr(new, attribute)
        if value != getattr(old, attribute):
            yield invalid(f"{path}{wire_name(attribute)}", value, IMMUTABLE)


def is_default(storage_class: StorageClass) -> bool:
    """Whether claims without a class are of this one."""
    return any(storage_class.metadata.annotations.get(key) == "true" for key in DEFAULT_CLASS)


class StorageClasses(_Storage[StorageClass]):
    resource = resource_of(StorageClass)
    returns_deleted = True
    columns = (
        NAME,
        Column("Provisioner", description="What makes the volumes."),
        Column("ReclaimPolicy", description="What becomes of a volume that is no longer claimed."),
        Column("VolumeBindingMode", description="When a claim gets its volume."),
        Column("AllowVolumeExpansion", description="Whether volumes can grow."),
        AGE,
    )

    def default(self, obj: StorageClass) -> None:
        if obj.reclaim_policy is None:
            obj.reclaim_policy = "Delete"
        if obj.volume_binding_mode is None:
            obj.volume_binding_mode = "Immediate"

    def validate_fields(self, obj: StorageClass) -> Iterator[Cause]:
        return validate_storage_class(obj)

    def validate_change(self, new: StorageClass, old: StorageClass) -> Iterator[Cause]:
        if new.parameters != old.parameters:
            shown = new.parameters if "parameters" in told_empty(new) else internal(new.parameters)
            yield invalid("parameters", shown, IMMUTABLE)
        yield from _immutable(new, old, "", "provisioner", "reclaim_policy", "volume_binding_mode")

    def warnings(self, obj: StorageClass) -> list[str]:
        return [
            f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {DEPRECATED_LABELS[one.key]}"
            for i, term in enumerate(obj.allowed_topologies)
            for j, one in enumerate(term.match_label_expressions)
            if one.key in DEPRECATED_LABELS
        ]

    def row(self, obj: StorageClass, now: datetime) -> list[Any]:
        return [
            f"{obj.metadata.name} (default)" if is_default(obj) else obj.metadata.name,
            obj.provisioner,
            obj.reclaim_policy,
            obj.volume_binding_mode,
            obj.allow_volume_expansion or False,
            age(obj.metadata.creation_timestamp, now),
        ]


class CSIDrivers(_Storage[CSIDriver]):
    resource = resource_of(CSIDriver)
    judges_prefix_again = False
    has_generation = True
    begins_at_one = False
    updates_unconditionally = False
    returns_deleted = True
    columns = (
        NAME,
        Column(
            "AttachRequired", "boolean", description="Whether volumes are attached before they are mounted."
        ),
        Column("PodInfoOnMount", "boolean", description="Whether the driver is told of the pod."),
        Column(
            "StorageCapacity", "boolean", description="Whether the driver tells how much storage there is."
        ),
        Column("TokenRequests", description="For whom the driver gets tokens of the pod."),
        Column("RequiresRepublish", "boolean", description="Whether mounts are asked for again and again."),
        Column("Modes", description="For what life of volumes the driver is."),
        AGE,
    )

    def default(self, obj: CSIDriver) -> None:
        spec = obj.spec
        spec.attach_required = True if spec.attach_required is None else spec.attach_required
        spec.pod_info_on_mount = spec.pod_info_on_mount or False
        spec.storage_capacity = spec.storage_capacity or False
        if spec.fs_group_policy is None:
            spec.fs_group_policy = "ReadWriteOnceWithFSType"
        spec.volume_lifecycle_modes = spec.volume_lifecycle_modes or ["Persistent"]
        spec.requires_republish = spec.requires_republish or False
        spec.se_linux_mount = spec.se_linux_mount or False

    def validate_fields(self, obj: CSIDriver) -> Iterator[Cause]:
        return validate_driver(obj.spec)

    def prepare_create(self, obj: CSIDriver, now: datetime) -> None:
        obj.spec.prevent_pod_scheduling_if_missing = None

    def prepare_update(self, new: CSIDriver, old: CSIDriver) -> None:
        # An alpha field, behind a gate that is off.
        new.spec.prevent_pod_scheduling_if_missing = old.spec.prevent_pod_scheduling_if_missing

    def validate_change(self, new: CSIDriver, old: CSIDriver) -> Iterator[Cause]:
        # Kubernetes calls the one field by a name that it does not have.
        if new.spec.attach_required != old.spec.attach_required:
            yield invalid("spec.attachedRequired", new.spec.attach_required, IMMUTABLE)
        yield from _immutable(new.spec, old.spec, "spec.", "volume_lifecycle_modes")

    def warnings(self, obj: CSIDriver) -> list[str]:
        unset = obj.spec.service_account_token_in_secrets is None
        return [TOKENS_IN_ATTRIBUTES] if obj.spec.token_requests and unset else []

    def update_warnings(self, obj: CSIDriver, old: CSIDriver) -> list[str]:
        return self.warnings(obj) if obj.spec.token_requests != old.spec.token_requests else []

    def row(self, obj: CSIDriver, now: datetime) -> list[Any]:
        spec = obj.spec
        tokens = ",".join(request.audience for request in spec.token_requests)
        return [
            obj.metadata.name,
            spec.attach_required,
            spec.pod_info_on_mount,
            spec.storage_capacity,
            tokens if spec.token_requests else UNSET,
            spec.requires_republish,
            joined(spec.volume_lifecycle_modes),
            age(obj.metadata.creation_timestamp, now),
        ]


class CSINodes(_Storage[CSINode]):
    resource = resource_of(CSINode)
    updates_unconditionally = False
    returns_deleted = True
    columns = (NAME, Column("Drivers", "integer", description="How many drivers the node has."), AGE)

    def validate_fields(self, obj: CSINode) -> Iterator[Cause]:
        return validate_drivers(obj.spec)

    def validate_change(self, new: CSINode, old: CSINode) -> Iterator[Cause]:
        return validate_drivers_update(new.spec, old.spec)

    def row(self, obj: CSINode, now: datetime) -> list[Any]:
        return [obj.metadata.name, len(obj.spec.drivers), age(obj.metadata.creation_timestamp, now)]


class CSIStorageCapacities(_Storage[CSIStorageCapacity]):
    resource = resource_of(CSIStorageCapacity)
    updates_unconditionally = False
    columns = UNPRINTED

    def validate_fields(self, obj: CSIStorageCapacity) -> Iterator[Cause]:
        return validate_capacity(obj)

    def validate_change(self, new: CSIStorageCapacity, old: CSIStorageCapacity) -> Iterator[Cause]:
        return _immutable(new, old, "", "node_topology", "storage_class_name")


class VolumeAttributesClasses(_Storage[VolumeAttributesClass]):
    resource = resource_of(VolumeAttributesClass)
    tells_changes_first = True
    returns_deleted = True
    columns = (NAME, Column("DriverName", description="The driver that knows the attributes."), AGE)

    def validate_fields(self, obj: VolumeAttributesClass) -> Iterator[Cause]:
        return validate_attributes_class(obj)

    def validate_change(self, new: VolumeAttributesClass, old: VolumeAttributesClass) -> Iterator[Cause]:
        for attribute in ("driver_name", "parameters"):
            if getattr(new, attribute) != getattr(old, attribute):
                yield forbidden(wire_name(attribute), f"updates to {wire_name(attribute)} are forbidden.")

    def row(self, obj: VolumeAttributesClass, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.driver_name, age(obj.metadata.creation_timestamp, now)]


def _validate_attached(new: VolumeAttachment, old: VolumeAttachment) -> Iterator[Cause]:
    yield from metadata.validate(new.metadata, namespaced=False)
    yield from validate_attachment_status(new.status)


class VolumeAttachments(_Storage[VolumeAttachment]):
    resource = resource_of(VolumeAttachment)
    updates_unconditionally = False
    returns_deleted = True
    subresources = {"status": Status(_validate_attached, keeps_metadata=True)}
    columns = (
        NAME,
        Column("Attacher", "string", "name", "The driver that attaches it."),
        Column("PV", description="The volume."),
        Column("Node", description="The node that it is for."),
        Column("Attached", "boolean", description="Whether it is there."),
        AGE,
    )

    def prepare_create(self, obj: VolumeAttachment, now: datetime) -> None:
        obj.status = VolumeAttachmentStatus()

    def prepare_update(self, new: VolumeAttachment, old: VolumeAttachment) -> None:
        new.status = old.status

    def validate_fields(self, obj: VolumeAttachment) -> Iterator[Cause]:
        return validate_attachment(obj)

    def validate_change(self, new: VolumeAttachment, old: VolumeAttachment) -> Iterator[Cause]:
        if new.spec != old.spec:
            yield invalid("spec", internal(new.spec), IMMUTABLE)

    def row(self, obj: VolumeAttachment, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.spec.attacher,
            obj.spec.source.persistent_volume_name or "",
            obj.spec.node_name,
            obj.status.attached,
            age(obj.metadata.creation_timestamp, now),
        ]
