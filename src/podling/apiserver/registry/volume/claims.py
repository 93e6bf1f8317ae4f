"""Faults of the template of the claim that an ephemeral volume makes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import choice, forbidden, invalid, not_supported, required
from podling.apiserver.registry.label_selectors import validate_label_selector
from podling.model import names
from podling.model.base import wire_name
from podling.model.errors import Cause
from podling.model.meta import ObjectMeta
from podling.model.volume import EphemeralVolumeSource, PersistentVolumeClaimSpec

ACCESS_MODES = frozenset(("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"))
VOLUME_MODES = frozenset(("Block", "Filesystem"))


def validate_ephemeral(source: EphemeralVolumeSource, path: str) -> Iterator[Cause]:
    template = source.volume_claim_template
    if template is None:
        yield required(f"{path}.volumeClaimTemplate")
        return
    yield from _validate_template_meta(template.metadata, f"{path}.volumeClaimTemplate.metadata")
    yield from _validate_claim(template.spec, f"{path}.volumeClaimTemplate.spec")


def _validate_template_meta(meta: ObjectMeta, path: str) -> Iterator[Cause]:
    yield from metadata.validate_annotations(meta.annotations, f"{path}.annotations")
    yield from metadata.validate_labels(meta.labels, f"{path}.labels")
    bare = msgspec.structs.replace(meta, annotations={}, labels={})
    for attribute in bare.__struct_fields__:
        if getattr(bare, attribute) != getattr(ObjectMeta(), attribute):
            yield forbidden(f"{path}.{wire_name(attribute)}", "cannot be set")


def _validate_claim(spec: PersistentVolumeClaimSpec, path: str) -> Iterator[Cause]:
    if not spec.access_modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.selector, f"{path}.selector")
    for mode in spec.access_modes:
        if mode not in ACCESS_MODES:
            yield not_supported(f"{path}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in spec.access_modes and len(set(spec.access_modes)) > 1:
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    storage = spec.resources.requests.get("storage")
    if storage is None:
        yield required(f"{path}.resources[storage]")
    elif storage.nanos <= 0:
        yield invalid(f"{path}.resources[storage]", storage, "must be greater than zero")
    if spec.storage_class_name:
        for fault in names.dns1123_subdomain(spec.storage_class_name):
            yield invalid(f"{path}.storageClassName", spec.storage_class_name, fault)
    yield from choice(f"{path}.volumeMode", spec.volume_mode, VOLUME_MODES)
