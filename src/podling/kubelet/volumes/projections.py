"""The files of downwardAPI volumes and of projected volumes with all their sources. Pure: objects are passed
in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from podling.kubelet.pod.containers import all_containers
from podling.kubelet.volumes.files import File, Payload, VolumeError, config_map_payload, secret_payload
from podling.kubelet.volumes.objects import Objects, token_key
from podling.model.types.pod import Pod
from podling.model.types.references import ResourceFieldSelector
from podling.model.types.volume import DownwardAPIVolumeFile, ServiceAccountTokenProjection, VolumeProjection

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")

ResourceValue = Callable[[ResourceFieldSelector], str]
"""Raises ValueError when there is no such container or resource."""


def downward_api_payload(
    items: Iterable[DownwardAPIVolumeFile], pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    return {
        item.path: File(_text(item, pod, resource_value).encode(), mode if item.mode is None else item.mode)
        for item in items
    }


def _text(item: DownwardAPIVolumeFile, pod: Pod, resource_value: ResourceValue) -> str:
    try:
        if item.field_ref is not None:
            return _field(pod, item.field_ref.field_path)
        if item.resource_field_ref is not None:
            return resource_value(item.resource_field_ref)
    except ValueError as error:
        raise VolumeError(str(error)) from error
    return ""


def _field(pod: Pod, path: str) -> str:
    maps = {"labels": pod.metadata.labels, "annotations": pod.metadata.annotations}
    if subscript := _SUBSCRIPT.fullmatch(path):
        return maps[subscript[1]].get(subscript[2], "")
    plain: Mapping[str, Callable[[], str]] = {
        "metadata.name": lambda: pod.metadata.name,
        "metadata.namespace": lambda: pod.metadata.namespace,
        "metadata.uid": lambda: pod.metadata.uid,
        "metadata.labels": lambda: _lines(maps["labels"]),
        "metadata.annotations": lambda: _lines(maps["annotations"]),
    }
    if path not in plain:
        raise ValueError(f"unsupported fieldPath: {path}")
    return plain[path]()


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    """As Go's strconv.Quote writes a string."""
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b"}
    named |= {"\f": "\\f", "\v": "\\v"}
    return '"' + "".join(named.get(char) or _printable(char) for char in text) + '"'


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


OWNERS_ONLY = 0o600


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


_REFUSED = {
    "cluster_trust_bundle": "clusterTrustBundle",
    "pod_certificate": "podCertificate",
}


def projected_payload(
    sources: Iterable[VolumeProjection], objects: Objects, pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    """The files of a projected volume; a later source replaces a file of an earlier one. Raises
    VolumeError."""
    merged: Payload = {}
    for source in sources:
        merged |= _one(source, objects, pod, resource_value, mode)
    return merged


def _one(
    source: VolumeProjection, objects: Objects, pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    if source.config_map is not None:
        return config_map_payload(source.config_map, objects.config_maps.get(source.config_map.name), mode)
    if source.secret is not None:
        return secret_payload(source.secret, objects.secrets.get(source.secret.name), mode)
    if source.downward_api is not None:
        return downward_api_payload(source.downward_api.items, pod, resource_value, mode)
    if source.service_account_token is not None:
        return token_payload(source.service_account_token, objects, pod, mode)
    for attribute, name in _REFUSED.items():
        if getattr(source, attribute) is not None:
            raise VolumeError(f"projected source {name} is not supported by this kubelet")
    return {}
