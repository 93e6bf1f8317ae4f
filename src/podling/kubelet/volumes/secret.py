"""secret volumes and projections. Pure: the object is passed in, None when there is none."""

from __future__ import annotations

from podling.kubelet.volumes.keys import select
from podling.kubelet.volumes.payload import Payload, VolumeError
from podling.model.config import Secret
from podling.model.volume import SecretProjection, SecretVolumeSource


def name_of(source: SecretVolumeSource | SecretProjection) -> str:
    return source.secret_name if isinstance(source, SecretVolumeSource) else source.name


def payload(source: SecretVolumeSource | SecretProjection, found: Secret | None, mode: int) -> Payload:
    optional = bool(source.optional)
    if found is None:
        if not optional:
            raise VolumeError(f'secret "{name_of(source)}" not found')
        return {}
    missing = "references non-existent secret key"
    return select(found.data, source.items, mode, optional=optional, missing=missing)
