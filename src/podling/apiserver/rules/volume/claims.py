"""Validation of PersistentVolumeClaims, those within a pod included (`ValidatePersistentVolumeClaimSpec` and
`...Update` of Kubernetes), and where a claim's data comes from.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.container.resources import is_native
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    choice,
    difference,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.rules.metadata import validate_label_selector
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.types.persistent_volume import (
    STORAGE_CLASS,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
)
from podling.model.types.references import TypedLocalObjectReference, TypedObjectReference
from podling.model.types.volume import PersistentVolumeClaimSpec

ALONE = "ReadWriteOncePod"
ACCESS_MODES = frozenset(("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", ALONE))
VOLUME_MODES = frozenset(("Block", "Filesystem"))
RESIZES = frozenset(
    (
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    )
)
BOUND = "Bound"
STORAGE = "storage"
CLAIM_KIND = "PersistentVolumeClaim"
SNAPSHOT = ("snapshot.storage.k8s.io", "VolumeSnapshot")
ZERO = Quantity()


def validate_access_modes(modes: list[str], path: str) -> Iterator[Cause]:
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported(path, mode, ACCESS_MODES)
    if ALONE in modes and len(ACCESS_MODES.intersection(modes)) > 1:
        yield forbidden(path, f"may not use {ALONE} with other access modes")


def validate_class(name: str | None, path: str) -> Iterator[Cause]:
    if name:
        yield from all_invalid(path, name, names.dns1123_subdomain(name))


def validate_amount(amount: Quantity, path: str) -> Iterator[Cause]:
    if amount.value() < 0:
        yield invalid(path, amount.value(), "must be a valid resource quantity")


def validate_claim(claim: PersistentVolumeClaim) -> list[Cause]:
    return [*metadata.validate(claim.metadata), *validate_claim_spec(claim.spec, "spec")]


def validate_claim_spec(spec: PersistentVolumeClaimSpec, path: str) -> Iterator[Cause]:
    if not spec.access_modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.selector, f"{path}.selector")
    yield from validate_access_modes(spec.access_modes, f"{path}.accessModes")
    storage, where = spec.resources.requests.get(STORAGE), f"{path}.resources[{STORAGE}]"
    if storage is None:
        yield required(where)
    elif storage.nanos <= 0:
        yield invalid(where, storage, "must be greater than zero")
    yield from validate_class(spec.storage_class_name, f"{path}.storageClassName")
    yield from choice(f"{path}.volumeMode", spec.volume_mode, VOLUME_MODES)
    source, reference = spec.data_source, spec.data_source_ref
    if source is not None:
        yield from _validate_source(source, f"{path}.dataSource")
    if reference is not None:
        yield from _validate_source(reference, f"{path}.dataSourceRef")
        if reference.namespace:
            faults = names.dns1123_label(reference.namespace)
            yield from all_invalid(f"{path}.dataSourceRef.namespace", reference.namespace, faults)
    if source is not None and reference is not None:
        # Kubernetes shows the name of the field where the value belongs, as an empty object.
        if reference.namespace:
            yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
        elif _local(reference) != source:
            yield invalid(path, {}, "must match dataSourceRef")
    yield from validate_class(spec.volume_attributes_class_name, f"{path}.volumeAttributesClassName")


def _validate_source(source: TypedLocalObjectReference | TypedObjectReference, path: str) -> Iterator[Cause]:
    if not source.name:
        yield required(f"{path}.name")
    if not source.kind:
        yield required(f"{path}.kind")
    if not source.api_group and source.kind != CLAIM_KIND:
        yield invalid(path, source.kind, f"must be '{CLAIM_KIND}' when referencing the default apiGroup")
    if source.api_group:
        faults = names.dns1123_subdomain(source.api_group)
        yield from all_invalid(f"{path}.apiGroup", source.api_group, faults)


def _local(reference: TypedObjectReference) -> TypedLocalObjectReference:
    return TypedLocalObjectReference(reference.api_group, reference.kind, reference.name)


def settle_sources(spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec | None) -> None:
    """Name the source of the data in both fields. The older one drops all but claims and snapshots. A source
    of another namespace is dropped, too: in Kubernetes its gate is off."""
    reference, source = spec.data_source_ref, spec.data_source
    had_reference = old is not None and old.data_source_ref is not None
    if reference is not None and reference.namespace and not had_reference:
        spec.data_source_ref = reference = None
    in_use = had_reference or (old is not None and old.data_source is not None)
    is_known = source is not None and (source.api_group or "", source.kind) in (SNAPSHOT, ("", CLAIM_KIND))
    if reference is None and not is_known and not in_use:
        spec.data_source = source = None
    if source is not None and reference is None:
        spec.data_source_ref = TypedObjectReference(source.api_group, source.kind, source.name)
    elif reference is not None and source is None and not reference.namespace:
        spec.data_source = _local(reference)


def class_of(claim: PersistentVolumeClaim) -> str | None:
    """The StorageClass that the claim names; None if it names none, empty if it wants none."""
    return claim.metadata.annotations.get(STORAGE_CLASS, claim.spec.storage_class_name)


def validate_claim_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Iterator[Cause]:
    annotated, was_said = (one.metadata.annotations.get(STORAGE_CLASS, "") for one in (new, old))
    # The field may take over from the annotation, and a claim without a class may get one.
    may_take_class = old.spec.storage_class_name is None and new.spec.storage_class_name is not None
    was_annotated = STORAGE_CLASS in old.metadata.annotations
    takes_over = may_take_class and was_annotated and new.spec.storage_class_name == was_said
    if annotated != was_said and not (takes_over and not annotated):
        yield invalid(f"metadata.annotations.{STORAGE_CLASS}", annotated, IMMUTABLE)
    allowed = msgspec.structs.replace(old.spec)
    if not old.spec.volume_name:
        allowed.volume_name = new.spec.volume_name
    if takes_over or (may_take_class and not was_annotated):
        allowed.storage_class_name = new.spec.storage_class_name
    if new.status.phase == BOUND:
        # Requests that are left out are a change, empty ones are none of storage.
        if new.spec.resources.requests or "resources.requests" in told_empty(new.spec):
            sizes = {name: size for name, size in old.spec.resources.requests.items() if name != STORAGE}
            if STORAGE in new.spec.resources.requests:
                sizes[STORAGE] = new.spec.resources.requests[STORAGE]
            allowed.resources = msgspec.structs.replace(old.spec.resources, requests=sizes)
        allowed.volume_attributes_class_name = new.spec.volume_attributes_class_name
    if new.spec != allowed:
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            "bound claims"
        )
        yield forbidden("spec", f"{why}\n{difference(allowed, new.spec, 'spec')}")
    size, before = (one.spec.resources.requests.get(STORAGE, ZERO) for one in (new, old))
    if size < before and size <= old.status.capacity.get(STORAGE, ZERO):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if new.spec.volume_mode != old.spec.volume_mode:
        yield invalid("volumeMode", new.spec.volume_mode, IMMUTABLE)
    # What a claim has of a VolumeAttributesClass it cannot give up.
    name, stood = new.spec.volume_attributes_class_name, old.spec.volume_attributes_class_name
    if name != stood and not name and old.status.current_volume_attributes_class_name is not None:
        what = "nil" if name is None else "empty string"
        why = "forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden("spec.volumeAttributesClassName", f"update to {what} is {why}")


def validate_claim_status(status: PersistentVolumeClaimStatus) -> Iterator[Cause]:
    for name, amount in status.capacity.items():
        yield from validate_amount(amount, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, resize in status.allocated_resource_statuses.items():
        yield from _validate_resource(name, path)
        if resize not in RESIZES:
            yield not_supported(path, name, RESIZES)
    path = "status.allocatedResources"
    for name, amount in status.allocated_resources.items():
        yield from [*_validate_resource(name, path)] or validate_amount(amount, f"{path}[{name}]")


def _validate_resource(name: str, path: str) -> Iterator[Cause]:
    faults = names.qualified_name(name)
    yield from all_invalid(path, name, faults)
    if not faults and is_native(name) and name != STORAGE:
        yield not_supported(path, name, (STORAGE,))
