"""What must be fetched before a pod's volumes can be laid out: which ConfigMaps, Secrets and tokens they are
made of, and what was found of them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from podling.kubelet.volumes import secret
from podling.model.config import ConfigMap, Secret
from podling.model.volume import ServiceAccountTokenProjection, Volume, VolumeProjection

DEFAULT_TOKEN_SECONDS = 3600


class TokenKey(NamedTuple):
    """Projections that ask for the same share a token. An empty audience is the API server's own."""

    audience: str
    seconds: int


class Objects(msgspec.Struct, frozen=True):
    """What was found, by name; a name that is not here does not exist."""

    config_maps: dict[str, ConfigMap] = msgspec.field(default_factory=dict)
    secrets: dict[str, Secret] = msgspec.field(default_factory=dict)
    tokens: dict[TokenKey, str] = msgspec.field(default_factory=dict)


def referenced_config_maps(volumes: Iterable[Volume]) -> set[str]:
    return {name for volume in volumes for name in _config_maps(volume)}


def referenced_secrets(volumes: Iterable[Volume]) -> set[str]:
    return {name for volume in volumes for name in _secrets(volume)}


def referenced_tokens(volumes: Iterable[Volume]) -> set[TokenKey]:
    return {
        token_key(source.service_account_token)
        for volume in volumes
        for source in _projections(volume)
        if source.service_account_token is not None
    }


def token_key(source: ServiceAccountTokenProjection) -> TokenKey:
    return TokenKey(source.audience, source.expiration_seconds or DEFAULT_TOKEN_SECONDS)


def tells_of_pod(volume: Volume) -> bool:
    """Whether the volume holds facts about the pod itself."""
    joined = any(source.downward_api is not None for source in _projections(volume))
    return joined or volume.downward_api is not None


def _projections(volume: Volume) -> Iterable[VolumeProjection]:
    return volume.projected.sources if volume.projected else ()


def _config_maps(volume: Volume) -> Iterator[str]:
    if volume.config_map is not None:
        yield volume.config_map.name
    for source in _projections(volume):
        if source.config_map is not None:
            yield source.config_map.name


def _secrets(volume: Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield secret.name_of(volume.secret)
    for source in _projections(volume):
        if source.secret is not None:
            yield secret.name_of(source.secret)
