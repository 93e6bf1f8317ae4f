"""Validation of a pod's volumes: their names, that each has exactly one source, and the rules of
that source.

Paths are written as Kubernetes writes them, also where its spelling of a source differs from the field's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import (
    all_invalid,
    choice,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.rules.metadata import validate_label_selector
from podling.apiserver.rules.volume import drivers
from podling.apiserver.rules.volume.drivers import validate_initiated, validate_iscsi
from podling.apiserver.rules.volume.projected import (
    validate_config_map,
    validate_downward_api,
    validate_projected,
    validate_secret,
)
from podling.model import names
from podling.model.codec.fields import wire_name
from podling.model.errors import Cause
from podling.model.types.volume import (
    EphemeralVolumeSource,
    PersistentVolumeClaimSpec,
    Volume,
)

ACCESS_MODES = frozenset(("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"))
VOLUME_MODES = frozenset(("Block", "Filesystem"))

Faults = Callable[[Any, str], Iterator[Cause]]

_MISSPELT = {"gce_persistent_disk": "persistentDisk"}
_MISSPELT_AS_SECOND = {"cephfs": "cephFS", "downward_api": "downwarAPI"}


def validate_ephemeral(source: EphemeralVolumeSource, path: str) -> Iterator[Cause]:
    template = source.volume_claim_template
    if template is None:
        yield required(f"{path}.volumeClaimTemplate")
        return
    yield from metadata.validate_template(template.metadata, f"{path}.volumeClaimTemplate.metadata")
    yield from validate_claim_spec(template.spec, f"{path}.volumeClaimTemplate.spec")


def validate_claim_spec(spec: PersistentVolumeClaimSpec, path: str) -> Iterator[Cause]:
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


def validate_volumes(
    volumes: list[Volume], path: str, pod: str = ""
) -> tuple[dict[str, Volume], list[Cause]]:
    """The sound ones by name, and the faults of the others. `pod`: its name, when it is one."""
    claims = {f"{pod}-{volume.name}" for volume in volumes if volume.ephemeral is not None} if pod else set()
    sound: dict[str, Volume] = {}
    causes: list[Cause] = []
    for i, volume in enumerate(volumes):
        where = f"{path}[{i}]"
        faults = list(_validate_source(volume, where, pod))
        if not volume.name:
            faults.append(required(f"{where}.name"))
        else:
            faults += all_invalid(f"{where}.name", volume.name, names.dns1123_label(volume.name))
        if volume.name in sound:
            faults.append(duplicate(f"{where}.name", volume.name))
        if faults:
            causes += faults
        else:
            sound[volume.name] = volume
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in claims:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            causes.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim.claim_name, why))
    return sound, causes


def _validate_source(volume: Volume, path: str, pod: str) -> Iterator[Cause]:
    given = [i for i, source in enumerate(msgspec.structs.astuple(volume)) if i and source is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    first, *others = (SOURCES[volume.__struct_fields__[i]] for i in given)
    if others:
        first, *others = sorted((first, *others), key=lambda source: source.order)
    source = getattr(volume, first.attribute)
    if source is volume.image and pod:
        # A template may leave it to whoever makes pods of it.
        yield from drivers.requires("reference")(source, f"{path}.image")
    yield from first.faults(source, f"{path}.{first.wire}")
    if volume.iscsi is not None:
        yield from validate_initiated(volume.iscsi, volume.name, path)
    for other in others:
        yield forbidden(f"{path}.{other.second}", "may not specify more than 1 volume type")
    if volume.ephemeral is not None and not others and pod and volume.name:
        claim = f"{pod}-{volume.name}"
        for fault in names.dns1123_subdomain(claim):
            yield invalid(f"{path}.name", volume.name, f'PVC name "{claim}": {fault}')


_FAULTS: dict[str, Faults] = {
    "empty_dir": drivers.validate_empty_dir,
    "host_path": drivers.validate_host_path,
    "git_repo": drivers.validate_git_repo,
    "gce_persistent_disk": drivers.validate_disk,
    "aws_elastic_block_store": drivers.validate_disk,
    "secret": validate_secret,
    "nfs": drivers.validate_nfs,
    "iscsi": validate_iscsi,
    "glusterfs": drivers.requires("endpoints", "path"),
    "flocker": drivers.validate_flocker,
    "persistent_volume_claim": drivers.requires("claim_name"),
    "rbd": drivers.requires("monitors", "image"),
    "cinder": drivers.validate_cinder,
    "cephfs": drivers.requires("monitors"),
    "quobyte": drivers.validate_quobyte,
    "downward_api": validate_downward_api,
    "fc": drivers.validate_fc,
    "flex_volume": drivers.validate_flex,
    "config_map": validate_config_map,
    "azure_file": drivers.requires("secret_name", "share_name"),
    "vsphere_volume": drivers.requires("volume_path"),
    "photon_persistent_disk": drivers.requires("pd_id"),
    "portworx_volume": drivers.requires("volume_id"),
    "azure_disk": drivers.validate_azure_disk,
    "storageos": drivers.validate_storageos,
    "projected": validate_projected,
    "scale_io": drivers.requires("gateway", "system", "volume_name"),
    "csi": drivers.validate_csi,
    "ephemeral": validate_ephemeral,
    "image": drivers.validate_image,
    # Judged as what it is, among the containers.
    "container": lambda source, path: iter(()),
}
"""Of each source, in the order in which the first of several is judged; the others are one too many."""


class _Source(NamedTuple):
    attribute: str
    order: int
    wire: str
    second: str
    """How it is named when it is one too many."""
    faults: Faults


SOURCES = {
    attribute: _Source(
        attribute,
        order,
        _MISSPELT.get(attribute, wire_name(attribute)),
        _MISSPELT_AS_SECOND.get(attribute, wire_name(attribute)),
        faults,
    )
    for order, (attribute, faults) in enumerate(_FAULTS.items())
}
