"""configMap volumes and projections. Pure: the object is passed in, None when there is none."""

from __future__ import annotations

from podling.kubelet.volumes.keys import select
from podling.kubelet.volumes.payload import Payload, VolumeError
from podling.model.config import ConfigMap
from podling.model.volume import ConfigMapProjection, ConfigMapVolumeSource


def payload(
    source: ConfigMapVolumeSource | ConfigMapProjection, found: ConfigMap | None, mode: int
) -> Payload:
    optional = bool(source.optional)
    if found is None:
        if not optional:
            raise VolumeError(f'configmap "{source.name}" not found')
        return {}
    data = {key: text.encode() for key, text in found.data.items()} | found.binary_data
    missing = "configmap references non-existent config key"
    return select(data, source.items, mode, optional=optional, missing=missing)
