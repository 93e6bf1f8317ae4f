"""Tells ValidatingAdmissionPolicies in their status what does not fit the types of what they are for, as the
controller validatingadmissionpolicy-status of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.codec.json import to_data
from podling.model.errors import StatusError
from podling.model.scheme import RESOURCES
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
        kinds = kinds_of(spec.match_constraints.resource_rules if spec.match_constraints else ())
        versions = {version for version, _ in kinds}
        if kinds and spec.param_kind is not None:
            versions.add(spec.param_kind.api_version)
        versions -= {one.api_version for one in RESOURCES}
        documents = {version: await self._document(version) for version in sorted(versions)}
        found = await self._check(spec, kinds, documents)
        checking: dict[str, Any] = {"expressionWarnings": to_data(found)} if found else {}
        status = {"observedGeneration": policy.metadata.generation, "typeChecking": checking}
        with gone_is_done():
            name = policy.metadata.name
            await self._client.apply_status(ValidatingAdmissionPolicy, name, MANAGER, status)

    async def _document(self, api_version: str) -> bytes:
        """Empty for a group version that is not served."""
        try:
            group = "apis" if "/" in api_version else "api"
            return await self._client.raw(f"/openapi/v3/{group}/{api_version}")
        except StatusError as error:
            if error.code != 404:
                raise
            return b""


def kinds_of(rules: Sequence[NamedRuleWithOperations]) -> list[Kind]:
    """The kinds of the resources that rules name, without wildcards and subresources: until a rule has
    MOST_KINDS of its own, in order of group, version and kind."""
    found: set[tuple[str, str, str]] = set()
    for rule in rules:
        if _is_wild(rule.api_groups) or _is_wild(rule.api_versions):
            continue
        of_rule = [
            (one.group, one.version, one.kind)
            for group in sorted(rule.api_groups)
            for version in sorted(rule.api_versions)
            for plural in sorted(rule.resources)
            for one in RESOURCES
            if one.plural == plural and one.version == version and group in ("", one.group)
        ]
        found.update(of_rule[:MOST_KINDS])
        if len(of_rule) >= MOST_KINDS:
            break
    return [(f"{group}/{version}" if group else version, kind) for group, version, kind in sorted(found)]


def _is_wild(names: Sequence[str]) -> bool:
    return "*" in names
