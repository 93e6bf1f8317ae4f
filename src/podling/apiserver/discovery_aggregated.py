"""Discovery in its newer form (apidiscovery.k8s.io): everything under `/api` or `/apis` in one document."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from podling.apiserver.discovery_tree import Versions, answered_kind, by_name
from podling.apiserver.registry.kind import Kind, Subresource

GROUP = "apidiscovery.k8s.io"


def aggregate(versions: Versions, form: str, *, core: bool) -> dict[str, Any]:
    keys = [key for key in versions if core == (not key[0])]
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated(kind) for kind in by_name(versions[group, version])],
                    "freshness": "Current",
                }
                for _, version in members
            ],
        }
        for group, members in groupby(keys, key=lambda key: key[0])
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{GROUP}/{form}",
        "metadata": {},
        "items": items,
    }


def _aggregated(kind: Kind[Any]) -> dict[str, Any]:
    resource = kind.resource
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": sorted(kind.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if kind.subresources:
        entry["subresources"] = [
            _aggregated_subresource(kind, subresource) for _, subresource in sorted(kind.subresources.items())
        ]
    return entry


def _aggregated_subresource(kind: Kind[Any], subresource: Subresource) -> dict[str, Any]:
    group, version, answered = answered_kind(kind, subresource)
    return {
        "subresource": subresource.name,
        "responseKind": {"group": group, "version": version, "kind": answered},
        "verbs": sorted(subresource.verbs),
    }
