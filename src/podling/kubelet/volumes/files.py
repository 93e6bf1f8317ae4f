"""The files of configMap and secret volumes, and the types that all volumes of files share. Pure.

The objects are passed in; None for an object that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from podling.model.types.core import ConfigMap, Secret
from podling.model.types.volume import (
    ConfigMapProjection,
    ConfigMapVolumeSource,
    KeyToPath,
    SecretProjection,
    SecretVolumeSource,
)


class VolumeError(Exception):
    """A volume cannot be set up now; a retry may help. The message is that of an event."""

    event = "FailedMount"
    more: Sequence[VolumeError] = ()
    """What failed beside it."""


class File(msgspec.Struct, frozen=True):
    """A file of a volume; `owner` is its uid, None for root."""

    data: bytes
    mode: int
    owner: int | None = None


Payload = dict[str, File]
"""The files of a volume by relative path."""


def select(
    data: Mapping[str, bytes], items: Sequence[KeyToPath], mode: int, *, optional: bool, missing: str
) -> Payload:
    """Every key as a file of its name, or only `items` at their paths. Raises VolumeError, whose message
    begins with `missing`, for an item without a key, unless `optional`."""
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    payload: Payload = {}
    for item in items:
        if item.key in data:
            payload[item.path] = File(data[item.key], mode if item.mode is None else item.mode)
        elif not optional:
            raise VolumeError(f"{missing}: {item.key}")
    return payload


def config_map_payload(
    source: ConfigMapVolumeSource | ConfigMapProjection, found: ConfigMap | None, mode: int
) -> Payload:
    """The files of a configMap volume or projection, as configmap.MakePayload. Raises VolumeError."""
    optional = bool(source.optional)
    if found is None:
        if not optional:
            raise VolumeError(f'configmap "{source.name}" not found')
        return {}
    data = {key: text.encode() for key, text in found.data.items()} | found.binary_data
    missing = "configmap references non-existent config key"
    return select(data, source.items, mode, optional=optional, missing=missing)


def secret_name_of(source: SecretVolumeSource | SecretProjection) -> str:
    return source.secret_name if isinstance(source, SecretVolumeSource) else source.name


def secret_payload(source: SecretVolumeSource | SecretProjection, found: Secret | None, mode: int) -> Payload:
    """The files of a secret volume or projection, as secret.MakePayload. Raises VolumeError."""
    optional = bool(source.optional)
    if found is None:
        if not optional:
            raise VolumeError(f'secret "{secret_name_of(source)}" not found')
        return {}
    missing = "references non-existent secret key"
    return select(found.data, source.items, mode, optional=optional, missing=missing)
