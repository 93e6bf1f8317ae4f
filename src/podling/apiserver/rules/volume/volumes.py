"""Validation of a pod's volumes: their names, that each has exactly one source, and the rules of
that source.

Paths are written as Kubernetes writes them, also where its spelling of a source differs from the field's.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import (
    all_invalid,
    duplicate,
    forbidden,
    invalid,
    required,
)
from podling.apiserver.rules.volume import drivers
from podling.apiserver.rules.volume.claims import validate_claim_spec
from podling.apiserver.rules.volume.drivers import validate_initiated, validate_iscsi
from podling.apiserver.rules.volume.projected import (
    validate_config_map,
    validate_downward_api,
    validate_projected,
    validate_secret,
)
from podling.apiserver.rules.volume.sources import given, sources
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.types.volume import (
    EphemeralVolumeSource,
    Volume,
)


def validate_ephemeral(source: EphemeralVolumeSource, path: str) -> Iterator[Cause]:
    template = source.volume_claim_template
    if template is None:
        yield required(f"{path}.volumeClaimTemplate")
        return
    where = f"{path}.volumeClaimTemplate.metadata"
    yield from metadata.validate_template(template.metadata, told_empty(template), where)
    yield from validate_claim_spec(template.spec, f"{path}.volumeClaimTemplate.spec")


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
    found = given(SOURCES, volume)
    if not found:
        yield required(path, "must specify a volume type")
        return
    first, *others = found
    source = getattr(volume, first.attribute)
    if source is volume.image and pod:
        # A template may leave it to whoever makes pods of it.
        yield from drivers.requires("reference")(source, f"{path}.image")
    yield from first.faults(source, f"{path}.{first.wire}")
    if volume.iscsi is not None:
        yield from validate_initiated(volume.iscsi, volume.name, volume.name, f"{path}.name")
    for other in others:
        yield forbidden(f"{path}.{other.second}", "may not specify more than 1 volume type")
    if volume.ephemeral is not None and not others and pod and volume.name:
        claim = f"{pod}-{volume.name}"
        for fault in names.dns1123_subdomain(claim):
            yield invalid(f"{path}.name", volume.name, f'PVC name "{claim}": {fault}')


SOURCES = sources(
    {
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
)
