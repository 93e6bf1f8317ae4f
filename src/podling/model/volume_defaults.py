"""Defaults of a pod's volume. Changed in place."""

from __future__ import annotations

from podling.model.container_defaults import default_container, pull_policy
from podling.model.volume import DownwardAPIVolumeFile, EmptyDirVolumeSource, ProjectedVolumeSource, Volume

FILE_MODE = 0o644
TOKEN_SECONDS = 3600

SOURCES = tuple(field for field in Volume.__struct_fields__ if field != "name")
"""The attributes of which a volume has exactly one."""


def default_volume(volume: Volume) -> None:
    if all(getattr(volume, source) is None for source in SOURCES):
        volume.empty_dir = EmptyDirVolumeSource()
    if volume.host_path is not None and volume.host_path.type is None:
        volume.host_path.type = ""
    if volume.image is not None and not volume.image.pull_policy:
        volume.image.pull_policy = pull_policy(volume.image.reference)
    for source in (volume.secret, volume.config_map, volume.downward_api, volume.projected):
        if source is not None and source.default_mode is None:
            source.default_mode = FILE_MODE
    if volume.downward_api is not None:
        _default_files(volume.downward_api.items)
    if volume.projected is not None:
        _default_projected(volume.projected)
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        claim = volume.ephemeral.volume_claim_template.spec
        claim.volume_mode = claim.volume_mode or "Filesystem"
    if volume.container is not None:
        default_container(volume.container)
    _default_drivers(volume)


def _default_projected(projected: ProjectedVolumeSource) -> None:
    for source in projected.sources:
        if source.downward_api is not None:
            _default_files(source.downward_api.items)
        token = source.service_account_token
        if token is not None and token.expiration_seconds is None:
            token.expiration_seconds = TOKEN_SECONDS


def _default_files(files: list[DownwardAPIVolumeFile]) -> None:
    for file in files:
        if file.field_ref is not None:
            file.field_ref.api_version = file.field_ref.api_version or "v1"


def _default_drivers(volume: Volume) -> None:
    if volume.iscsi is not None:
        volume.iscsi.iscsi_interface = volume.iscsi.iscsi_interface or "default"
    if volume.rbd is not None:
        volume.rbd.pool = volume.rbd.pool or "rbd"
        volume.rbd.user = volume.rbd.user or "admin"
        volume.rbd.keyring = volume.rbd.keyring or "/etc/ceph/keyring"
    if volume.azure_disk is not None:
        disk = volume.azure_disk
        disk.caching_mode = disk.caching_mode or "ReadWrite"
        disk.fs_type = disk.fs_type or "ext4"
        disk.read_only = disk.read_only or False
        disk.kind = disk.kind or "Shared"
    if volume.scale_io is not None:
        volume.scale_io.storage_mode = volume.scale_io.storage_mode or "ThinProvisioned"
        volume.scale_io.fs_type = volume.scale_io.fs_type or "xfs"
