"""What a server serves, as it says itself: also kinds podling has no type for."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from podling.client.client import Client


class Served(NamedTuple):
    """One resource of one group version. `root` is the path its group version is under."""

    root: str
    group: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "") -> str:
        """Of its objects in a namespace, or of all."""
        return (
            f"{self.root}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.root}/{self.plural}"
        )


class _Resource(msgspec.Struct):
    name: str
    namespaced: bool = False
    verbs: list[str] = []


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    preferred_version: _Version


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


async def served(client: Client) -> list[Served]:
    """All resources, each in the version its group prefers; no subresources."""
    groups = msgspec.json.decode(await client.raw("/apis"), type=_Groups).groups
    roots = [("", "/api/v1"), *((one.name, f"/apis/{one.preferred_version.group_version}") for one in groups)]
    return [
        Served(root, group, resource.name, resource.namespaced, frozenset(resource.verbs))
        for group, root in roots
        for resource in msgspec.json.decode(await client.raw(root), type=_Resources).resources
        if "/" not in resource.name
    ]
