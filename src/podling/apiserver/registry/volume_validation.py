"""Faults of a pod's volumes and of their sources."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.env_validation import VOLUME_FIELDS, validate_field_ref, validate_resource_ref
from podling.apiserver.registry.field import (
    all_invalid,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.registry.volume_defaults import SOURCES
from podling.model import names
from podling.model.base import wire_name
from podling.model.errors import Cause
from podling.model.volume import (
    DownwardAPIVolumeFile,
    HostPathVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MIN_TOKEN_SECONDS, MAX_TOKEN_SECONDS = 600, 1 << 32
MAX_MODE = 0o777
BACKSTEPS = "must not contain '..'"
MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_volumes(volumes: list[Volume], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        where = f"{path}[{i}]"
        yield from _validate_source(volume, where)
        if not volume.name:
            yield required(f"{where}.name")
            continue
        faults = names.dns1123_label(volume.name)
        yield from all_invalid(f"{where}.name", volume.name, faults)
        if not faults and volume.name in seen:
            yield duplicate(f"{where}.name", volume.name)
        seen.add(volume.name)


def _validate_source(volume: Volume, path: str) -> Iterator[Cause]:
    given = [wire_name(source) for source in SOURCES if getattr(volume, source) is not None]
    if not given:
        yield required(path, "must specify a volume type")
    for wire in given[1:]:
        yield forbidden(f"{path}.{wire}", "may not specify more than 1 volume type")
    limit = volume.empty_dir.size_limit if volume.empty_dir is not None else None
    if limit is not None and limit.nanos < 0:
        yield forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")
    if volume.host_path is not None:
        yield from _validate_host_path(volume.host_path, f"{path}.hostPath")
    if volume.secret is not None:
        yield from _named(volume.secret.secret_name, f"{path}.secret.secretName")
        yield from _validate_mode(volume.secret.default_mode, f"{path}.secret.defaultMode")
        yield from _validate_items(volume.secret.items, f"{path}.secret.items")
    if volume.config_map is not None:
        yield from _named(volume.config_map.name, f"{path}.configMap.name")
        yield from _validate_mode(volume.config_map.default_mode, f"{path}.configMap.defaultMode")
        yield from _validate_items(volume.config_map.items, f"{path}.configMap.items")
    if volume.downward_api is not None:
        yield from _validate_mode(volume.downward_api.default_mode, f"{path}.downwardAPI.defaultMode")
        yield from _validate_files(volume.downward_api.items, f"{path}.downwardAPI")
    if volume.projected is not None:
        yield from _validate_projected(volume.projected, f"{path}.projected")
    if volume.persistent_volume_claim is not None:
        yield from _named(
            volume.persistent_volume_claim.claim_name, f"{path}.persistentVolumeClaim.claimName"
        )
    if volume.image is not None:
        yield from _named(volume.image.reference, f"{path}.image.reference")
        if volume.image.pull_policy and volume.image.pull_policy not in PULL_POLICIES:
            yield not_supported(f"{path}.image.pullPolicy", volume.image.pull_policy, PULL_POLICIES)


def _named(value: str, path: str) -> Iterator[Cause]:
    if not value:
        yield required(path)


def _validate_host_path(source: HostPathVolumeSource, path: str) -> Iterator[Cause]:
    if not source.path:
        yield required(f"{path}.path")
    elif ".." in source.path.split("/"):
        yield invalid(f"{path}.path", source.path, BACKSTEPS)
    if source.type and source.type not in HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", source.type, HOST_PATH_TYPES)


def _validate_mode(mode: int | None, path: str) -> Iterator[Cause]:
    if mode is not None and not 0 <= mode <= MAX_MODE:
        yield invalid(path, mode, MODE_RANGE)


def _validate_items(items: list[KeyToPath], path: str) -> Iterator[Cause]:
    for i, item in enumerate(items):
        where = f"{path}[{i}]"
        yield from _named(item.key, f"{where}.key")
        yield from _validate_path(item.path, f"{where}.path")
        yield from _validate_mode(item.mode, f"{where}.mode")


def _validate_path(value: str, path: str) -> Iterator[Cause]:
    """A file within a volume: relative, and not stepping out of it."""
    if not value:
        yield required(path)
        return
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    if ".." in value.split("/"):
        yield invalid(path, value, BACKSTEPS)
    elif value.startswith(".."):
        yield invalid(path, value, "must not start with '..'")


def _validate_files(files: list[DownwardAPIVolumeFile], path: str) -> Iterator[Cause]:
    for file in files:
        yield from _validate_path(file.path, f"{path}.path")
        if file.field_ref is not None:
            yield from validate_field_ref(file.field_ref, f"{path}.fieldRef", VOLUME_FIELDS)
            if file.resource_field_ref is not None:
                yield invalid(
                    path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"
                )
        elif file.resource_field_ref is not None:
            yield from validate_resource_ref(file.resource_field_ref, f"{path}.resourceFieldRef", volume=True)
        else:
            yield required(path, "one of fieldRef and resourceFieldRef is required")
        yield from _validate_mode(file.mode, f"{path}.mode")


def _validate_projected(projected: ProjectedVolumeSource, path: str) -> Iterator[Cause]:
    yield from _validate_mode(projected.default_mode, f"{path}.defaultMode")
    paths: set[str] = set()
    for i, source in enumerate(projected.sources):
        where = f"{path}.sources[{i}]"
        given = [wire_name(name) for name in source.__struct_fields__ if getattr(source, name) is not None]
        for wire in given[1:]:
            yield forbidden(f"{where}.{wire}", "may not specify more than 1 volume type")
        yield from _validate_projection(source, where)
        for file in _projected_paths(source):
            if file in paths:
                yield invalid(path, "***", f"conflicting duplicate paths: {file}")
            paths.add(file)


def _validate_projection(source: VolumeProjection, path: str) -> Iterator[Cause]:
    if source.secret is not None:
        yield from _named(source.secret.name, f"{path}.secret.name")
        yield from _validate_items(source.secret.items, f"{path}.secret.items")
    if source.config_map is not None:
        yield from _named(source.config_map.name, f"{path}.configMap.name")
        yield from _validate_items(source.config_map.items, f"{path}.configMap.items")
    if source.downward_api is not None:
        yield from _validate_files(source.downward_api.items, f"{path}.downwardAPI")
    if source.service_account_token is not None:
        yield from _validate_token(source.service_account_token, f"{path}.serviceAccountToken")


def _validate_token(token: ServiceAccountTokenProjection, path: str) -> Iterator[Cause]:
    seconds = token.expiration_seconds or 0
    if seconds < MIN_TOKEN_SECONDS:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > MAX_TOKEN_SECONDS:
        yield invalid(
            f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"
        )
    yield from _validate_path(token.path, f"{path}.path")


def _projected_paths(source: VolumeProjection) -> Iterator[str]:
    for projection in (source.secret, source.config_map, source.downward_api):
        if projection is not None:
            yield from (item.path for item in projection.items)
    if source.service_account_token is not None:
        yield source.service_account_token.path
