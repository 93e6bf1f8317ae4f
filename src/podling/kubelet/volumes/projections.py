"""The files of downwardAPI volumes and of projected volumes with all their sources. Pure: objects are passed
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from podling.kubelet.cri_config.environment import field_value, quoted
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.volumes.files import File, Payload, VolumeError, config_map_payload, secret_payload
from podling.kubelet.volumes.objects import Objects, token_key
from podling.model.types.pod import Pod
from podling.model.types.references import ResourceFieldSelector
from podling.model.types.volume import DownwardAPIVolumeFile, ServiceAccountTokenProjection, VolumeProjection

ResourceValue = Callable[[ResourceFieldSelector], str]
"""Raises ValueError when there is no such container or resource."""
OWNERS_ONLY = 0o600
_REFUSED = {
    "cluster_trust_bundle": "clusterTrustBundle",
    "pod_certificate": "podCertificate",
}


def downward_api_payload(
    items: Iterable[DownwardAPIVolumeFile], pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    """Raises VolumeError."""
    fields = {
        "metadata.labels": lambda: _lines(pod.metadata.labels),
        "metadata.annotations": lambda: _lines(pod.metadata.annotations),
    }
    payload: Payload = {}
    for item in items:
        text = ""
        try:
            if item.field_ref is not None:
                text = field_value(pod, item.field_ref.field_path, fields)
            elif item.resource_field_ref is not None:
                text = resource_value(item.resource_field_ref)
        except ValueError as error:
            raise VolumeError(str(error)) from error
        payload[item.path] = File(text.encode(), mode if item.mode is None else item.mode)
    return payload


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={quoted(values[key])}" for key in sorted(values))


def token_payload(source: ServiceAccountTokenProjection, objects: Objects, pod: Pod, mode: int) -> Payload:
    """The token's file. Its mode is 0600 if all containers run as one user, who then owns it, or if fsGroup
    is set, which adds the group's rights later; else `mode`."""
    owner = only_user(pod)
    context = pod.spec.security_context
    owned = owner is not None or (context is not None and context.fs_group is not None)
    token = objects.tokens[token_key(source)]
    return {source.path: File(token.encode(), OWNERS_ONLY if owned else mode, owner)}


def only_user(pod: Pod) -> int | None:
    """The runAsUser of all containers; None if they differ or one has none."""
    of_pod = pod.spec.security_context.run_as_user if pod.spec.security_context else None
    users = set()
    for _, container in all_containers(pod):
        context = container.security_context
        own = context.run_as_user if context else None
        users.add(of_pod if own is None else own)
    return users.pop() if len(users) == 1 else None


def projected_payload(
    sources: Iterable[VolumeProjection], objects: Objects, pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    """The files of a projected volume; a later source replaces a file of an earlier one. Raises VolumeError,
    which tells of all sources that cannot be had."""

    def files(source: VolumeProjection) -> Payload:
        for attribute, name in _REFUSED.items():
            if getattr(source, attribute) is not None:
                raise VolumeError(f"projected source {name} is not supported by this kubelet")
        if (maps := source.config_map) is not None:
            return config_map_payload(maps, objects.config_maps.get(maps.name), mode)
        if (secret := source.secret) is not None:
            return secret_payload(secret, objects.secrets.get(secret.name), mode)
        if source.downward_api is not None:
            return downward_api_payload(source.downward_api.items, pod, resource_value, mode)
        if source.service_account_token is not None:
            return token_payload(source.service_account_token, objects, pod, mode)
        return {}

    merged: Payload = {}
    failures: dict[str, None] = {}
    for source in sources:
        try:
            merged |= files(source)
        except VolumeError as error:
            failures[str(error)] = None
    if failures:
        said = ", ".join(failures)
        raise VolumeError(said if len(failures) == 1 else f"[{said}]")
    return merged
