"""Volumes made of an object's keys: what a configMap or secret volume, or a projection of one, holds.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podling.kubelet.volumes.payload import File, Payload, VolumeError
from podling.model.volume import KeyToPath


def select(
    data: Mapping[str, bytes], items: Sequence[KeyToPath], mode: int, *, optional: bool, missing: str
) -> Payload:
    """Every key as a file of its name, or only `items` at their paths. `missing` is how a wrong key is spoken
    of."""
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    payload: Payload = {}
    for item in items:
        if item.key in data:
            payload[item.path] = File(data[item.key], mode if item.mode is None else item.mode)
        elif not optional:
            raise VolumeError(f"{missing}: {item.key}")
    return payload
