"""Pull secrets: what `imagePullSecrets` say about a registry. Pure.

A secret is of type `kubernetes.io/dockerconfigjson` (key `.dockerconfigjson`) or the older
`kubernetes.io/dockercfg`. A secret that cannot be read is as good as none, as with Kubernetes: the pull then
fails and says so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.pulling.image_reference import covers, place_of, registry_of_key

_JSON_KEY = ".dockerconfigjson"
_CFG_KEY = ".dockercfg"


def credentials_for(image: str, secrets: Iterable[Mapping[str, bytes]]) -> list[pb.AuthConfig]:
    """The credentials that fit `image`, the most specific first, each once. `secrets` are decoded `data`."""
    place = place_of(image)
    found: list[tuple[str, pb.AuthConfig]] = []
    for data in secrets:
        found.extend((key, auth) for key, auth in _entries(data) if covers(key, place))
    found.sort(key=lambda entry: sum(map(len, registry_of_key(entry[0]))), reverse=True)
    unique: list[pb.AuthConfig] = []
    for _, auth in found:
        if auth not in unique:
            unique.append(auth)
    return unique


def _entries(data: Mapping[str, bytes]) -> Iterator[tuple[str, pb.AuthConfig]]:
    try:
        if _JSON_KEY in data:
            registries = msgspec.json.decode(data[_JSON_KEY]).get("auths") or {}
        else:
            registries = msgspec.json.decode(data.get(_CFG_KEY, b"{}"))
        for registry, entry in registries.items():
            yield registry, _auth(entry)
    except (msgspec.DecodeError, AttributeError, TypeError):
        return


def _auth(entry: Mapping[str, Any]) -> pb.AuthConfig:
    user, password = entry.get("username", ""), entry.get("password", "")
    if not user and entry.get("auth"):
        user, password = _split(entry["auth"])
    return pb.AuthConfig(
        username=user,
        password=password,
        identity_token=entry.get("identitytoken", ""),
        registry_token=entry.get("registrytoken", ""),
    )


def _split(auth: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(auth).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user, password
