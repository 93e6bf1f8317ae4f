"""Image references and the credentials of imagePullSecrets that fit them. Pure.

A reference is `[registry/]path[:tag][@digest]`. The first part is a registry if it has a dot or a port or is
`localhost`; else the image is Docker Hub's. A pull secret has the type `kubernetes.io/dockerconfigjson` (key
`.dockerconfigjson`) or the older `kubernetes.io/dockercfg`. As in Kubernetes, a secret that cannot be parsed
is ignored, and the pull fails for want of credentials.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import msgspec

from podling.cri.grpc import cri_pb2 as pb

DEFAULT_REGISTRY = "docker.io"

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_ALIASES = {"index.docker.io": DEFAULT_REGISTRY, "registry-1.docker.io": DEFAULT_REGISTRY}


class InvalidReference(ValueError):
    """The image name is invalid. The message is that of the container's status."""


class Place(NamedTuple):
    """A registry host (with its port) and a path in it."""

    registry: str
    path: str


def with_default_tag(image: str) -> str:
    """`busybox` becomes `busybox:latest`; a reference with tag or digest stays. Raises InvalidReference."""
    match = _REFERENCE.fullmatch(image)
    if match is None:
        problem = "invalid reference format"
        if _REFERENCE.fullmatch(image.lower()):
            problem += ": repository name must be lowercase"
        raise InvalidReference(
            f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {problem}'
        )
    return image if match["tag"] or match["digest"] else f"{image}:latest"


def place_of(image: str) -> Place:
    match = _REFERENCE.fullmatch(image)
    name = match["name"] if match else image
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return Place(_ALIASES.get(first, first), rest)
    return Place(DEFAULT_REGISTRY, name if slash else f"library/{name}")


def covers(pattern: str, place: Place) -> bool:
    """Whether a key of a Docker configuration, such as `https://*.example.com:5000/team`, is for that image.

    Host parts match one by one, `*` within a part; ports must be equal; a path must be a prefix."""
    host, path = registry_of_key(pattern)
    return _host_matches(host, place.registry) and (not path or _below(path, place.path))


def registry_of_key(key: str) -> Place:
    """The registry and path of a key, without its scheme and the path of an API version (`/v1`, `/v2`)."""
    host, _, path = key.split("://", 1)[-1].rstrip("/").partition("/")
    return Place(_ALIASES.get(host, host), "" if path in ("v1", "v2") else path)


def _host_matches(pattern: str, host: str) -> bool:
    name, _, port = pattern.partition(":")
    real_name, _, real_port = host.partition(":")
    parts, real_parts = name.split("."), real_name.split(".")
    if port != real_port or len(parts) != len(real_parts):
        return False
    return all(fnmatchcase(real, part) for part, real in zip(parts, real_parts, strict=True))


def _below(prefix: str, path: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


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
