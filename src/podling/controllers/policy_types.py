"""Tells ValidatingAdmissionPolicies in their status what does not fit the types of what they are for, as the
controller validatingadmissionpolicy-status of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.codec.json import to_data
from podling.model.errors import StatusError
from podling.model.scheme import RESOURCES, Resource
from podling.model.types.admissionregistration import (
    ExpressionWarning,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec,
)

MANAGER = "validatingadmissionpolicy-status"
MOST_KINDS = 10
"""Of one policy."""

Kind = tuple[str, str]
"""apiVersion and kind."""
TypeCheck = Callable[
    [ValidatingAdmissionPolicySpec, Sequence[Kind], Mapping[str, bytes]], Awaitable[list[ExpressionWarning]]
]
"""What does not fit, of a policy that is for these kinds; OpenAPI documents by apiVersion, in JSON, of those
that are not built in."""


class PolicyTypes:
    name = MANAGER

    def __init__(
        self, client: Client, policies: Informer[ValidatingAdmissionPolicy], check: TypeCheck
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._policies, self._check = client, policies, check
        policies.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        policy = self._policies.get(*key)
        if policy is None or policy.status.observed_generation == policy.metadata.generation:
            return
        spec = policy.spec
        rules = spec.match_constraints.resource_rules if spec.match_constraints else []
        kinds = kinds_of(rules, [one for place in unknown(rules) for one in await self._served(*place)])
        versions = {version for version, _ in kinds}
        if kinds and spec.param_kind is not None:
            versions.add(spec.param_kind.api_version)
        versions -= {one.api_version for one in RESOURCES}
        documents = {one: await self._get(openapi(one), b"") for one in sorted(versions)}
        found = await self._check(spec, kinds, documents)
        checking: dict[str, Any] = {"expressionWarnings": to_data(found)} if found else {}
        status = {"observedGeneration": policy.metadata.generation, "typeChecking": checking}
        with gone_is_done():
            name = policy.metadata.name
            await self._client.apply_status(ValidatingAdmissionPolicy, name, MANAGER, status)

    async def _served(self, group: str, version: str) -> list[Served]:
        """What custom resources, or API servers behind this one, add to what is built in."""
        said = await self._get(f"/apis/{group}/{version}", b"{}")
        listed = msgspec.json.decode(said, type=_Listed).resources
        return [Served(group, version, one.name, one.kind) for one in listed]

    async def _get(self, path: str, missing: bytes) -> bytes:
        try:
            return await self._client.raw(path)
        except StatusError as error:
            if error.code != 404:
                raise
            return missing


class Served(NamedTuple):
    """A resource that podling has no type for."""

    group: str
    version: str
    plural: str
    kind: str


class _Resource(msgspec.Struct):
    name: str = ""
    kind: str = ""


class _Listed(msgspec.Struct):
    """An APIResourceList."""

    resources: list[_Resource] = []


def openapi(api_version: str) -> str:
    return f"/openapi/v3/{'apis' if '/' in api_version else 'api'}/{api_version}"


def unknown(rules: Iterable[NamedRuleWithOperations]) -> list[tuple[str, str]]:
    """The groups with their versions that rules name and nothing built in is of."""
    named = {
        (group, version)
        for rule in rules
        if not _is_wild(rule.api_groups) and not _is_wild(rule.api_versions)
        for group in rule.api_groups
        for version in rule.api_versions
        if group and version
    }
    return sorted(named - {(one.group, one.version) for one in RESOURCES})


def kinds_of(rules: Sequence[NamedRuleWithOperations], others: Sequence[Served] = ()) -> list[Kind]:
    """The kinds of the resources that rules name, built in or of `others`, without wildcards and
    subresources: until a rule has MOST_KINDS of its own, in order of group, version and kind."""
    every: tuple[Resource | Served, ...] = (*RESOURCES, *others)
    found: set[tuple[str, str, str]] = set()
    for rule in rules:
        if _is_wild(rule.api_groups) or _is_wild(rule.api_versions):
            continue
        of_rule = [
            (one.group, one.version, one.kind)
            for group in sorted(rule.api_groups)
            for version in sorted(rule.api_versions)
            for plural in sorted(rule.resources)
            for one in every
            if one.plural == plural and one.version == version and group in ("", one.group)
        ]
        found.update(of_rule[:MOST_KINDS])
        if len(of_rule) >= MOST_KINDS:
            break
    return [(f"{group}/{version}" if group else version, kind) for group, version, kind in sorted(found)]


def _is_wild(names: Sequence[str]) -> bool:
    return "*" in names
