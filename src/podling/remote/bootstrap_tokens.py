"""Bootstrap tokens of a cluster, as `kubeadm token` makes, lists and deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

import msgspec
import yaml

from podling.client import informer
from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.rules.bootstrap_tokens import (
    INFO,
    INFO_NAMESPACE,
    KUBECONFIG,
    NAMESPACE,
    PREFIX,
    SECRET_TYPE,
    SIGNATURE,
    USAGES,
    expiration,
    key_hashes,
    secret_of,
    told,
)
from podling.model.time import human_duration, rfc3339
from podling.model.types.core import ConfigMap, Secret

SIGNED_WITHIN = 60.0
"""Seconds: longer than it takes until other controllers lead."""
HEADS = ["TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"]


class InfoError(ValueError):
    """What is published of the cluster cannot be used; says why."""


class Place(msgspec.Struct, frozen=True):
    """Of a cluster: the URL of its API server, and its authorities in PEM."""

    server: str
    authority: bytes


class _Cluster(msgspec.Struct):
    server: str
    authority: bytes = msgspec.field(name="certificate-authority-data", default=b"")


class _Entry(msgspec.Struct):
    cluster: _Cluster


class _Config(msgspec.Struct):
    clusters: list[_Entry]


def place_of(kubeconfig: str) -> Place:
    """Of the one cluster that `cluster-info` names. Raises InfoError."""
    try:
        ((entry),) = msgspec.convert(yaml.safe_load(kubeconfig), _Config).clusters
    except (yaml.YAMLError, ValueError) as error:
        raise InfoError(
            f"what the cluster says of itself is no kubeconfig of one cluster: {error}"
        ) from error
    return Place(entry.cluster.server, entry.cluster.authority)


async def create(client: Client, token: str, until: datetime | None, description: str) -> None:
    """Raises ValueError for what is no token, StatusError if there is one of its name."""
    await client.create(secret_of(token, until, description))


async def join_command(client: Client, token: str) -> str:
    """Once it can be used: a controller signs by the token what tells the cluster from others. Raises
    StatusError, InfoError."""
    signature = SIGNATURE + token.partition(".")[0]
    try:
        async with asyncio.timeout(SIGNED_WITHIN):
            await informer.until(client, ConfigMap, INFO_NAMESPACE, INFO, lambda info: signature in info.data)
    except TimeoutError as error:
        raise InfoError(
            f"the token is made, and nobody has signed by it within {SIGNED_WITHIN:g} s: do the controllers "
            "of the cluster run?"
        ) from error
    info = await client.get(ConfigMap, INFO, INFO_NAMESPACE)
    place = place_of(info.data.get(KUBECONFIG, ""))
    hashes = " ".join(f"--ca-hash {one}" for one in key_hashes(place.authority))
    return f"podling join {urlsplit(place.server).netloc} --token {token} {hashes}"


async def rows(client: Client, now: datetime) -> Sequence[Sequence[str]]:
    """A table, with its heads."""
    found = (await client.list(Secret, NAMESPACE, field_selector=f"type={SECRET_TYPE}")).items
    return [HEADS, *(_row(one, now) for one in found)]


def _row(secret: Secret, now: datetime) -> list[str]:
    said = told(secret)
    try:
        until = expiration(said)
        ends, left = (rfc3339(until), human_duration((until - now).total_seconds())) if until else ("", "")
    except ValueError:
        ends, left = said["expiration"], "<invalid>"
    usages = ",".join(usage for usage in USAGES if said.get(f"usage-bootstrap-{usage}") == "true")
    token = f"{said.get('token-id', '')}.{said.get('token-secret', '')}"
    given = [usages, said.get("description", ""), said.get("auth-extra-groups", "")]
    return [token, left or "<forever>", ends or "<never>", *(one or "<none>" for one in given)]


async def delete(client: Client, token: str) -> str:
    """`token` may be its id alone, which is returned. Raises StatusError."""
    name = token.partition(".")[0]
    try:
        await client.delete(Secret, PREFIX + name, NAMESPACE)
    except StatusError as error:
        if error.code != 404:
            raise
        raise StatusError(404, "NotFound", f'there is no bootstrap token "{name}"') from error
    return name
