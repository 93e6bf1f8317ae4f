"""Discovery in its older form: a document for the roots, each group, and each version of a group."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from podling.apiserver.registry.kind import Connect, Kind, Posted, Subresource
from podling.apiserver.registry.review import Review

Versions = Mapping[tuple[str, str], Sequence[Kind[Any]]]
"""The kinds of each (group, version)."""


def tree(versions: Versions) -> Iterable[tuple[str, Any]]:
    core = [version for group, version in versions if not group]
    yield "/api", {"kind": "APIVersions", "versions": core, "serverAddressByClientCIDRs": []}
    groups = []
    for group, members in groupby((key for key in versions if key[0]), key=lambda key: key[0]):
        described = _group(group, [version for _, version in members])
        groups.append(described)
        yield f"/apis/{group}", {"kind": "APIGroup", "apiVersion": "v1", **described}
    yield "/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    for (group, version), kinds in versions.items():
        group_version = f"{group}/{version}" if group else version
        yield (
            f"/apis/{group_version}" if group else f"/api/{version}",
            {
                "kind": "APIResourceList",
                **({"apiVersion": "v1"} if group else {}),
                "groupVersion": group_version,
                "resources": [entry for kind in by_name(kinds) for entry in _resources(kind)],
            },
        )


def by_name(kinds: Sequence[Kind[Any]]) -> list[Kind[Any]]:
    return sorted(kinds, key=lambda kind: kind.resource.plural)


def _group(group: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resources(kind: Kind[Any]) -> Iterable[dict[str, Any]]:
    resource = kind.resource
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sorted(kind.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if not isinstance(kind, Review):
        entry["storageVersionHash"] = _storage_hash(kind)
    yield entry
    for name, subresource in sorted(kind.subresources.items()):
        group, version, answered = answered_kind(kind, subresource)
        foreign = (group, version) != (resource.group, resource.version)
        yield {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **({"group": group, "version": version} if foreign else {}),
            "kind": answered,
            "verbs": sorted(subresource.verbs),
        }


def answered_kind(kind: Kind[Any], subresource: Subresource) -> tuple[str, str, str]:
    """Group, version and kind of what a subresource is read or written as."""
    resource = kind.resource
    if isinstance(subresource, Posted):
        group, _, version = subresource.body.API_VERSION.rpartition("/")
        return group, version, subresource.body.KIND
    if isinstance(subresource, Connect):
        return resource.group, resource.version, subresource.options
    return resource.group, resource.version, resource.kind


def _storage_hash(kind: Kind[Any]) -> str:
    resource = kind.resource
    named = f"{resource.group}/{resource.version}/{resource.kind}".encode()
    return msgspec.json.encode(hashlib.sha256(named).digest()[:8]).decode().strip('"')
