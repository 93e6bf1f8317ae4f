"""Faults of a pod's volumes: their names, and that each has one source, which its own rules then judge.

Paths are written as Kubernetes writes them, where its own spelling of a source differs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.registry.field import (
    all_invalid,
    choice,
    duplicate,
    forbidden,
    invalid,
    required,
)
from podling.apiserver.registry.volume import drivers
from podling.apiserver.registry.volume.claims import validate_ephemeral
from podling.apiserver.registry.volume.files import (
    validate_config_map,
    validate_downward_api,
    validate_secret,
)
from podling.apiserver.registry.volume.iscsi import validate_initiated, validate_iscsi
from podling.apiserver.registry.volume.paths import validate_no_backsteps
from podling.apiserver.registry.volume.projected import validate_projected
from podling.model import names
from podling.model.base import wire_name
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.volume import EmptyDirVolumeSource, HostPathVolumeSource, ImageVolumeSource, Volume

HOST_PATH_TYPES = frozenset(ENUMS["HostPathVolumeSource", "type"])
PULL_POLICIES = frozenset(ENUMS["Container", "imagePullPolicy"])


def validate_volumes(
    volumes: list[Volume], path: str, pod: str = ""
) -> tuple[dict[str, Volume], list[Cause]]:
    """The sound ones by name, and the faults of the others. `pod`: its name, when it is one."""
    claims = {f"{pod}-{volume.name}" for volume in volumes if volume.ephemeral is not None} if pod else set()
    sound: dict[str, Volume] = {}
    causes: list[Cause] = []
    for i, volume in enumerate(volumes):
        where = f"{path}[{i}]"
        faults = [*_validate_source(volume, where, pod), *_validate_name(volume.name, where, sound)]
        if faults:
            causes += faults
        else:
            sound[volume.name] = volume
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in claims:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            causes.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim.claim_name, why))
    return sound, causes


def _validate_name(name: str, path: str, taken: dict[str, Volume]) -> Iterator[Cause]:
    if not name:
        yield required(f"{path}.name")
    else:
        yield from all_invalid(f"{path}.name", name, names.dns1123_label(name))
    if name in taken:
        yield duplicate(f"{path}.name", name)


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


def _validate_empty_dir(source: EmptyDirVolumeSource, path: str) -> Iterator[Cause]:
    if source.size_limit is not None and source.size_limit.nanos < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _validate_host_path(source: HostPathVolumeSource, path: str) -> Iterator[Cause]:
    if not source.path:
        yield required(f"{path}.path")
        return
    yield from validate_no_backsteps(source.path, f"{path}.path")
    yield from choice(f"{path}.type", source.type, HOST_PATH_TYPES)


def _validate_image(source: ImageVolumeSource, path: str) -> Iterator[Cause]:
    yield from choice(f"{path}.pullPolicy", source.pull_policy or None, PULL_POLICIES)


Faults = Callable[[Any, str], Iterator[Cause]]

_FAULTS: dict[str, Faults] = {
    "empty_dir": _validate_empty_dir,
    "host_path": _validate_host_path,
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
    "image": _validate_image,
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


_MISSPELT = {"gce_persistent_disk": "persistentDisk"}
_MISSPELT_AS_SECOND = {"cephfs": "cephFS", "downward_api": "downwarAPI"}

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
