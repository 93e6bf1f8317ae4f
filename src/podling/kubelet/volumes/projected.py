"""projected volumes: several sources in one directory. Pure: the objects are passed in."""

from __future__ import annotations

from collections.abc import Iterable

from podling.kubelet.volumes import config_map, downward_api, secret, service_account_token
from podling.kubelet.volumes.downward_api import ResourceValue
from podling.kubelet.volumes.objects import Objects
from podling.kubelet.volumes.payload import Payload, VolumeError
from podling.model.pod import Pod
from podling.model.volume import VolumeProjection

_REFUSED = {
    "cluster_trust_bundle": "clusterTrustBundle",
    "pod_certificate": "podCertificate",
}


def payload(
    sources: Iterable[VolumeProjection], objects: Objects, pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    """A later source's file replaces an earlier one's of the same path."""
    merged: Payload = {}
    for source in sources:
        merged |= _one(source, objects, pod, resource_value, mode)
    return merged


def _one(
    source: VolumeProjection, objects: Objects, pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    if source.config_map is not None:
        return config_map.payload(source.config_map, objects.config_maps.get(source.config_map.name), mode)
    if source.secret is not None:
        return secret.payload(source.secret, objects.secrets.get(source.secret.name), mode)
    if source.downward_api is not None:
        return downward_api.payload(source.downward_api.items, pod, resource_value, mode)
    if source.service_account_token is not None:
        return service_account_token.payload(source.service_account_token, objects, pod, mode)
    for attribute, name in _REFUSED.items():
        if getattr(source, attribute) is not None:
            raise VolumeError(f"projected source {name} is not supported by this kubelet")
    return {}
