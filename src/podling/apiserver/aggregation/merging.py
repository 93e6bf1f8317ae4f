"""Discovery of several servers as one: the groups and versions of the others beside this one's, in the order
of their priorities, as Kubernetes' aggregator tells them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from podling.apiserver.aggregation.passing import Remote
from podling.apiserver.paths.discovery import Discovery, groups_of, items_of
from podling.model.codec.fields import Part, always
from podling.model.codec.json import to_data
from podling.model.types.apiregistration import PRIORITIES, APIService

OWN = APIService.API_VERSION.partition("/")[0]
"""The group that extends the API comes first."""
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_RIPE = {None: 2, "beta": 1, "alpha": 0}


class AnsweredKind(Part):
    group: str = always(str)
    version: str = always(str)
    kind: str = always(str)


class ToldSubresource(Part):
    subresource: str = always(str)
    response_kind: AnsweredKind | None = None
    accepted_types: list[AnsweredKind] = []
    verbs: list[str] = always(list)


class ToldResource(Part):
    resource: str = always(str)
    response_kind: AnsweredKind | None = None
    scope: str = always(str)
    singular_resource: str = always(str)
    verbs: list[str] = always(list)
    short_names: list[str] = []
    categories: list[str] = []
    subresources: list[ToldSubresource] = []


class ToldVersion(Part):
    version: str = always(str)
    resources: list[ToldResource] = []


class GroupName(Part):
    name: str = ""


class ToldGroup(Part):
    metadata: GroupName = always(GroupName)
    versions: list[ToldVersion] = []


class Told(Part):
    """apidiscovery.k8s.io, APIGroupDiscoveryList: what another server says of itself."""

    items: list[ToldGroup] = []

    def resources(self, group: str, version: str) -> list[ToldResource]:
        """None are told of a version that it does not have."""
        return [
            resource
            for one in self.items
            for each in one.versions
            if (one.metadata.name, each.version) == (group, version)
            for resource in each.resources
        ]


class Listed(Part):
    name: str = always(str)
    singular_name: str = always(str)
    namespaced: bool = always(bool)
    group: str = ""
    version: str = ""
    kind: str = always(str)
    verbs: list[str] = always(list)
    short_names: list[str] = []
    categories: list[str] = []


class ListedResources(Part):
    """meta/v1, APIResourceList: the older form, of one version."""

    resources: list[Listed] = []

    def told(self) -> list[ToldResource]:
        """The same in the newer form."""
        made: dict[str, ToldResource] = {}
        for one in self.resources:
            name, _, subresource = one.name.partition("/")
            kind = AnsweredKind(one.group, one.version, one.kind) if one.kind else None
            if subresource:
                above = made.setdefault(name, ToldResource(name, scope=_scope(one)))
                above.subresources.append(ToldSubresource(subresource, kind, [], one.verbs))
                continue
            below = made[name].subresources if name in made else []
            made[name] = ToldResource(
                name,
                kind,
                _scope(one),
                one.singular_name,
                one.verbs,
                one.short_names,
                one.categories,
                below,
            )
        return list(made.values())


def _scope(one: Listed) -> str:
    return "Namespaced" if one.namespaced else "Cluster"


def merge(discovery: Discovery, remotes: Sequence[Remote]) -> None:
    """Have `discovery` tell of `remotes`, too: in the place of own groups and versions that are the same."""
    told = {(one.group, one.version): _of_version(one) for one in remotes}
    own = {
        (one["metadata"]["name"], each["version"]): each
        for one in items_of(discovery.versions, core=False)
        for each in one["versions"]
    }
    keys = in_order({*own, *told}, remotes)
    items = [
        {"metadata": {"name": group}, "versions": [told.get(key) or own[key] for key in members]}
        for group, members in groupby(keys, key=lambda key: key[0])
    ]
    discovery.tell(groups_of(keys), items, [f"/apis/{group}/{version}" for group, version in told])


def in_order(keys: Iterable[tuple[str, str]], remotes: Iterable[Remote]) -> list[tuple[str, str]]:
    """Groups and versions by their priorities: a group has the highest of its versions'."""
    priorities = PRIORITIES | {(one.group, one.version): one.priorities for one in remotes}
    keys = list(keys)
    of_groups: dict[str, int] = {}
    for key in keys:
        least, _ = priorities.get(key, (0, 0))
        of_groups[key[0]] = max(of_groups.get(key[0], 0), least)

    def place(key: tuple[str, str]) -> Any:
        group, version = key
        _, of_version = priorities.get(key, (0, 0))
        return group != OWN, -of_groups[group], group, -of_version, age(version)

    return sorted(keys, key=place)


def age(version: str) -> tuple[Any, ...]:
    """Sorts versions as Kubernetes does: v2, v1, v2beta1, v1alpha2, and what is none by name."""
    if (said := _VERSION.fullmatch(version)) is None:
        return True, 0, 0, 0, version
    return False, -_RIPE[said[2]], -int(said[1]), -int(said[3] or 0), version


def _of_version(remote: Remote) -> dict[str, Any]:
    """A version of the aggregated form; one of a server that does not answer is stale."""
    if remote.learned is None:
        return {"version": remote.version, "freshness": "Stale"}
    resources = [to_data(one) for one in remote.learned.resources]
    return {
        "version": remote.version,
        **({"resources": resources} if resources else {}),
        "freshness": "Current",
    }
