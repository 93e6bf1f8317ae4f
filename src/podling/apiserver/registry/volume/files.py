"""Faults of the files a volume is made of: keys of objects or fields of the pod, and their modes."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.container.env_fields import (
    VOLUME_FIELDS,
    validate_field_ref,
    validate_resource_ref,
)
from podling.apiserver.registry.field import invalid, required
from podling.apiserver.registry.volume.paths import validate_not_reserved
from podling.model.errors import Cause
from podling.model.volume import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    KeyToPath,
    SecretVolumeSource,
)

MAX_MODE = 0o777
MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_secret(source: SecretVolumeSource, path: str) -> Iterator[Cause]:
    yield from validate_named(source.secret_name, f"{path}.secretName")
    yield from validate_mode(source.default_mode, f"{path}.defaultMode")
    yield from validate_items(source.items, f"{path}.items")


def validate_config_map(source: ConfigMapVolumeSource, path: str) -> Iterator[Cause]:
    yield from validate_named(source.name, f"{path}.name")
    yield from validate_mode(source.default_mode, f"{path}.defaultMode")
    yield from validate_items(source.items, f"{path}.items")


def validate_downward_api(source: DownwardAPIVolumeSource, path: str) -> Iterator[Cause]:
    yield from validate_mode(source.default_mode, f"{path}.defaultMode")
    for file in source.items:
        yield from validate_file(file, path)


def validate_named(value: str, path: str) -> Iterator[Cause]:
    if not value:
        yield required(path)


def validate_mode(mode: int | None, path: str) -> Iterator[Cause]:
    if mode is not None and not 0 <= mode <= MAX_MODE:
        yield invalid(path, mode, MODE_RANGE)


def validate_items(items: list[KeyToPath], path: str) -> Iterator[Cause]:
    for i, item in enumerate(items):
        where = f"{path}[{i}]"
        yield from validate_named(item.key, f"{where}.key")
        yield from validate_file_path(item.path, f"{where}.path")
        yield from validate_mode(item.mode, f"{where}.mode")


def validate_file_path(value: str, path: str) -> Iterator[Cause]:
    if not value:
        yield required(path)
    else:
        yield from validate_not_reserved(value, path)


def validate_file(file: DownwardAPIVolumeFile, path: str) -> Iterator[Cause]:
    """`path` is that of the source: Kubernetes does not say which of its files it means."""
    yield from validate_file_path(file.path, f"{path}.path")
    if file.field_ref is not None:
        yield from validate_field_ref(file.field_ref, f"{path}.fieldRef", VOLUME_FIELDS)
        if file.resource_field_ref is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", why)
    elif file.resource_field_ref is not None:
        yield from validate_resource_ref(file.resource_field_ref, f"{path}.resourceFieldRef", volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from validate_mode(file.mode, f"{path}.mode")
