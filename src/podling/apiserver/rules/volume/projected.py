"""Validation of volumes made of files: Secrets, ConfigMaps, the downward API, and projected volumes, which
join several such sources, whose files must not hide one another.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.container.env import VOLUME_FIELDS, validate_field_ref, validate_resource_ref
from podling.apiserver.rules.field import (
    forbidden,
    invalid,
    required,
    too_long,
    validate_not_reserved,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.volume import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    SecretVolumeSource,
    VolumeProjection,
)

MAX_MODE = 0o777
MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"

MIN_TOKEN_SECONDS, MAX_TOKEN_SECONDS = 600, 1 << 32

MAX_SIGNER = 253 + 1 + 317
"""Bytes of a domain, a slash and a path."""


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


def validate_projected(projected: ProjectedVolumeSource, path: str) -> Iterator[Cause]:
    yield from validate_mode(projected.default_mode, f"{path}.defaultMode")
    paths: set[str] = set()
    for i, source in enumerate(projected.sources):
        where = f"{path}.sources[{i}]"
        yield from _validate_projection(source, where, path)
        for file, shown in _files(source):
            if file in paths:
                yield invalid(path, shown, "conflicting duplicate paths")
            paths.add(file)
        if sum(getattr(source, name) is not None for name in source.__struct_fields__) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


def _validate_projection(source: VolumeProjection, path: str, whole: str) -> Iterator[Cause]:
    """`whole`: the projected volume, which Kubernetes names for a bad path of a token."""
    if source.secret is not None:
        yield from validate_named(source.secret.name, f"{path}.secret.name")
        yield from validate_items(source.secret.items, f"{path}.secret.items")
    if source.config_map is not None:
        yield from validate_named(source.config_map.name, f"{path}.configMap.name")
        yield from validate_items(source.config_map.items, f"{path}.configMap.items")
    if source.downward_api is not None:
        for file in source.downward_api.items:
            yield from validate_file(file, f"{path}.downwardAPI")
    if source.service_account_token is not None:
        token = source.service_account_token
        where, seconds = f"{path}.serviceAccountToken.expirationSeconds", token.expiration_seconds or 0
        if seconds < MIN_TOKEN_SECONDS:
            yield invalid(where, seconds, "may not specify a duration less than 10 minutes")
        if seconds > MAX_TOKEN_SECONDS:
            yield invalid(where, seconds, "may not specify a duration larger than 2^32 seconds")
        if not token.path:
            yield required(f"{whole}.path")
        else:
            yield from validate_not_reserved(token.path, f"{whole}.path")


def _files(source: VolumeProjection) -> Iterator[tuple[str, str]]:
    """Paths, each with what is shown when it is taken. A token's may be taken: that is only warned of."""
    if source.secret is not None:
        yield from ((item.path, source.secret.name) for item in source.secret.items if item.path)
    if source.config_map is not None:
        yield from ((item.path, source.config_map.name) for item in source.config_map.items if item.path)
    if source.downward_api is not None:
        yield from ((item.path, item.path) for item in source.downward_api.items if item.path)


def validate_signer(name: str, path: str) -> Iterator[Cause]:
    """The name of a certificate signer: a domain and a path (`example.com/signer`)."""
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, why)
        return
    for label in domain.split("."):
        for why in names.dns1123_label(label):
            yield invalid(path, domain, f'validating label "{label}": {why}')
    if "." not in domain:
        yield invalid(path, domain, "should be a domain with at least two segments separated by dots")
    for label in rest.split("."):
        for why in names.dns1123_subdomain(label):
            yield invalid(path, rest, f'validating label "{label}": {why}')
    if len(name) > MAX_SIGNER:
        yield too_long(path, MAX_SIGNER)
