"""The ConfigMaps and Secrets a pod's volumes are made of: which they are, and what was found of them.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podling.kubelet.volumes import secret
from podling.model.config import ConfigMap, Secret
from podling.model.volume import Volume


@dataclass(frozen=True, slots=True)
class Objects:
    """What was found, by name; a name that is not here does not exist."""

    config_maps: dict[str, ConfigMap] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)


def referenced_config_maps(volumes: Iterable[Volume]) -> set[str]:
    return {name for volume in volumes for name in _config_maps(volume)}


def referenced_secrets(volumes: Iterable[Volume]) -> set[str]:
    return {name for volume in volumes for name in _secrets(volume)}


def _config_maps(volume: Volume) -> Iterator[str]:
    if volume.config_map is not None:
        yield volume.config_map.name
    for source in volume.projected.sources if volume.projected else ():
        if source.config_map is not None:
            yield source.config_map.name


def _secrets(volume: Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield secret.name_of(volume.secret)
    for source in volume.projected.sources if volume.projected else ():
        if source.secret is not None:
            yield secret.name_of(source.secret)
