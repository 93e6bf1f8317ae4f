"""What an autoscaler scales: the resource of a kind, by discovery, and its scale, also of kinds that podling
has no type for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from podling.client.client import Client
from podling.controllers.autoscaling.computation import Unknown
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.selectors import SortedSelector, parse_label_selector
from podling.model.time import Clock
from podling.model.types.autoscaling import CrossVersionObjectReference, Scale

REMEMBERED = timedelta(seconds=30)
"""For so long what discovery says is not asked again."""


UNREADABLE = (
    "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
    "failed to parse target selector"
)
NO_RESOURCE = "the server could not find the requested resource"


class _Resource(msgspec.Struct):
    name: str
    kind: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Versions(msgspec.Struct, rename="camel"):
    versions: list[_Version] = []


class Mapped(NamedTuple):
    """A kind's resource in one version. `root` is the path of the version."""

    root: str
    group: str
    plural: str

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Scaled(NamedTuple):
    """`selector` is that of the pods, None if the scale has none."""

    path: str
    scale: Scale
    selector: SortedSelector | None


class Targets:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[tuple[str, str], tuple[datetime, list[Mapped]]] = {}

    async def read(self, reference: CrossVersionObjectReference, namespace: str) -> Scaled:
        """Of the first version that has it. Raises Unknown, StatusError."""
        faults: list[Unknown | StatusError] = []
        for mapped in await self.mapped(reference):
            path = f"{mapped.root}/namespaces/{namespace}/{mapped.plural}/{reference.name}/scale"
            try:
                return scaled_at(path, json.decode(await self._client.raw(path), Scale))
            except (Unknown, StatusError) as error:
                is_status = isinstance(error, Unknown) or error.reason or error.code != 404
                faults.append(error if is_status else Unknown(NO_RESOURCE))
        raise faults[0]

    async def write(self, scaled: Scaled, replicas: int) -> None:
        """Raises StatusError."""
        scaled.scale.spec.replicas = replicas
        await self._client.put_path(scaled.path, scaled.scale)

    async def mapped(self, reference: CrossVersionObjectReference) -> list[Mapped]:
        """In all versions of its group, the preferred first. Raises Unknown, StatusError."""
        group = group_of(reference.api_version)
        key, now = (group, reference.kind), self._clock.now()
        known = self._known.get(key)
        if known is None or not now - REMEMBERED < known[0] <= now:
            self._known = {k: v for k, v in self._known.items() if now - REMEMBERED < v[0] <= now}
            known = self._known[key] = (now, [one async for one in self._asked(group, reference.kind)])
        if not known[1]:
            raise Unknown(f'no matches for kind "{reference.kind}" in group "{group}"')
        return known[1]

    async def _asked(self, group: str, kind: str) -> AsyncIterator[Mapped]:
        """Raises StatusError."""
        if group:
            try:
                told = msgspec.json.decode(await self._client.raw(f"/apis/{group}"), type=_Versions)
            except StatusError as error:
                if error.code != 404:
                    raise
                return
            roots = [f"/apis/{one.group_version}" for one in told.versions]
        else:
            roots = ["/api/v1"]
        for root in roots:
            every = msgspec.json.decode(await self._client.raw(root), type=_Resources).resources
            for one in every:
                if one.kind == kind and "/" not in one.name:
                    yield Mapped(root, group, one.name)


def scaled_at(path: str, scale: Scale) -> Scaled:
    """Raises Unknown."""
    text = scale.status.selector
    try:
        return Scaled(path, scale, parse_label_selector(text) if text else None)
    except StatusError as error:
        raise Unknown(f'{UNREADABLE}: couldn\'t parse the selector string "{text}": {error}') from error


def group_of(api_version: str) -> str:
    """Raises Unknown."""
    if api_version.count("/") > 1:
        raise Unknown(f"unexpected GroupVersion string: {api_version}")
    return api_version.partition("/")[0] if "/" in api_version else ""
