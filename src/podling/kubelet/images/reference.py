"""Image references and the credentials of imagePullSecrets that fit them. Pure.

A reference is `[registry/]path[:tag][@digest]`. The first part is a registry if it has a dot, a port or a
capital or is `localhost`; else the image is Docker Hub's. A pull secret has the type
`kubernetes.io/dockerconfigjson` (key `.dockerconfigjson`) or the older `kubernetes.io/dockercfg`. As in
Kubernetes, a secret that cannot be parsed is ignored, and the pull fails for want of credentials.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
_DIGITS = re.compile("[0-9a-f]{64}")
_ALIASES = {"index.docker.io": DEFAULT_REGISTRY, "registry-1.docker.io": DEFAULT_REGISTRY}
_JSON_KEY = ".dockerconfigjson"
_CFG_KEY = ".dockercfg"


class InvalidReference(ValueError):
    """The image name is invalid. The message is that of the container's status."""


class Repository(NamedTuple):
    """A registry host (with its port) and a path in it."""

    registry: str
    path: str


def with_default_tag(image: str) -> str:
    """`busybox` becomes `busybox:latest`; a reference with tag or digest stays. Raises InvalidReference."""
    match = _REFERENCE.fullmatch(image)
    path = place_of(image).path.partition(":")[0]
    if _DIGITS.fullmatch(image):
        problem = f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    elif path != path.lower():
        problem = f"invalid reference format: repository name ({path}) must be lowercase"
    elif match is None:
        problem = "invalid reference format"
    else:
        return image if match["tag"] or match["digest"] else f"{image}:latest"
    raise InvalidReference(
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {problem}'
    )


def place_of(image: str) -> Repository:
    """Registry and path, with Docker Hub's defaults (`docker.io`, `library/`); any text has them."""
    match = _REFERENCE.fullmatch(image)
    name = match["name"] if match else image
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return Repository(_ALIASES.get(first, first), rest)
    return Repository(DEFAULT_REGISTRY, name if slash else f"library/{name}")


def covers(pattern: str, place: Repository) -> bool:
    """Whether a key of a Docker configuration, such as `https://*.example.com:5000/team`, is for that image.

    Host parts match one by one, `*` within a part; ports must be equal; a path must be a prefix."""
    host, path = registry_of_key(pattern)
    name, _, port = host.partition(":")
    real_name, _, real_port = place.registry.partition(":")
    parts, real_parts = name.split("."), real_name.split(".")
    if port != real_port or len(parts) != len(real_parts):
        return False
    if not all(fnmatchcase(real, part) for part, real in zip(parts, real_parts, strict=True)):
        return False
    return path in ("", place.path) or place.path.startswith(f"{path}/")


def registry_of_key(key: str) -> Repository:
    """The registry and path of a key, without its scheme and the path of an API version (`/v1`, `/v2`)."""
    host, _, path = key.split("://", 1)[-1].rstrip("/").partition("/")
    return Repository(_ALIASES.get(host, host), "" if path in ("v1", "v2") else path)


def credentials_for(image: str, secrets: Iterable[Mapping[str, bytes]]) -> list[pb.AuthConfig]:
    """The credentials that fit `image`, the most specific first, each once. `secrets` are decoded `data`."""
    place = place_of(image)
    found: list[tuple[str, pb.AuthConfig]] = []
    for data in secrets:
        # A secret that cannot be parsed counts as far as it can be.
        with suppress(msgspec.DecodeError, AttributeError, TypeError):
            if _JSON_KEY in data:
                registries = msgspec.json.decode(data[_JSON_KEY]).get("auths") or {}
            else:
                registries = msgspec.json.decode(data.get(_CFG_KEY, b"{}"))
            for key, entry in registries.items():
                auth = _auth(entry)
                if covers(key, place):
                    found.append((key, auth))
    found.sort(key=lambda entry: sum(map(len, registry_of_key(entry[0]))), reverse=True)
    unique: list[pb.AuthConfig] = []
    for _, auth in found:
        if auth not in unique:
            unique.append(auth)
    return unique


def _auth(entry: Mapping[str, Any]) -> pb.AuthConfig:
    user, password = entry.get("username", ""), entry.get("password", "")
    if not user and entry.get("auth"):
        try:
            user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user = password = ""
    return pb.AuthConfig(
        username=user,
        password=password,
        identity_token=entry.get("identitytoken", ""),
        registry_token=entry.get("registrytoken", ""),
    )
