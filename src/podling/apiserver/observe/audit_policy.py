"""The audit policy, audit.k8s.io/v1: how much of which request goes to the audit log.

A policy is read and checked once, with Kubernetes' words for what is wrong with it, and compiled: the first
rule that matches a request decides, and `Recording` looks for it among those of the request's verb.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import msgspec

from podling.apiserver.request.recorded import Amount, Level
from podling.apiserver.request.request import MOST_REPEATED, RepeatedRequest, RequestInfo, User
from podling.apiserver.rules import field
from podling.apiserver.rules.configuration_file import all_faults
from podling.model import names
from podling.model.codec import json
from podling.model.codec.fields import Part, always
from podling.model.codec.strict import field_faults, strict_message
from podling.model.errors import Cause, StatusError
from podling.model.types.meta import KubeObject

GROUP, VERSION = "audit.k8s.io", "audit.k8s.io/v1"
RECEIVED, STARTED, COMPLETE, PANIC = "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"
STAGES = (RECEIVED, STARTED, COMPLETE, PANIC)
LEVELS: Mapping[str, Level] = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
LEVEL_NAMES = tuple(LEVELS)
ANY = "*"
NOTHING = Amount()
FAILURES = Amount(Level.METADATA, frozenset({RECEIVED, STARTED}), only_failures=True)


class PolicyError(ValueError):
    """A policy that cannot be used; the message has the path of each fault."""


class GroupResources(Part):
    group: str = ""
    resources: list[str] = []
    resource_names: list[str] = []


class PolicyRule(Part):
    level: str = always(str)
    users: list[str] = []
    user_groups: list[str] = []
    verbs: list[str] = []
    resources: list[GroupResources] = []
    namespaces: list[str] = []
    non_resource_URLs: list[str] = []
    omit_stages: list[str] = []
    omit_managed_fields: bool | None = None


class Policy(KubeObject):
    KIND: ClassVar[str] = "Policy"
    API_VERSION: ClassVar[str] = VERSION

    rules: list[PolicyRule] = always(list)
    omit_stages: list[str] = []
    omit_managed_fields: bool = False


DEFAULT = Policy(
    rules=[
        # Who debugged which pod, with which image and rights: `podling audit debugged`.
        PolicyRule(
            level="Request",
            verbs=["create", "update", "patch", "delete"],
            resources=[GroupResources(resources=["pods/ephemeralcontainers", "pods/debug"])],
        ),
        # These reach into a pod, also by GET.
        PolicyRule(
            level="Metadata",
            resources=[
                GroupResources(resources=["*/exec", "*/attach", "*/portforward", "*/proxy", "*/log"]),
            ],
        ),
        PolicyRule(level="None", verbs=["get", "list", "watch", "head", "options", ""]),
        PolicyRule(level="Metadata"),
    ],
    omit_stages=[RECEIVED],
    omit_managed_fields=True,
)
"""Podling's own, for who gives none: whoever changed something or reached into a pod. Beside it whatever is
refused is recorded, which no policy of Kubernetes can say."""


def read_policy(data: bytes) -> Policy:
    """A policy from JSON. Raises PolicyError."""
    try:
        said = json.decode_data(data)
        if not isinstance(said, dict):
            raise PolicyError(f"the policy is no object but {field.shown(said)}")
        kind, version = said.get("kind") or Policy.KIND, said.get("apiVersion")
        if version != VERSION:
            raise PolicyError(f"apiVersion: {field.not_supported('', version or '', [VERSION]).message}")
        if kind != Policy.KIND:
            raise PolicyError(f"kind: {field.not_supported('', kind, [Policy.KIND]).message}")
        policy = json.decode(data, Policy)
        unknown = field_faults(data, Policy)
    except StatusError as error:
        raise PolicyError(f"failed decoding: {error.__cause__ or error.message}") from error
    if unknown:
        raise PolicyError(f"failed decoding: {strict_message(unknown)}")
    if not policy.rules:
        raise PolicyError("loaded illegal policy with 0 rules")
    if told := all_faults(validate(policy)):
        raise PolicyError(told)
    return policy


def validate(policy: Policy) -> Iterator[Cause]:
    yield from _stage_faults(policy.omit_stages, "omitStages")
    for index, rule in enumerate(policy.rules):
        path = f"rules[{index}]"
        yield from field.one_of(f"{path}.level", rule.level, LEVEL_NAMES)
        yield from _url_faults(rule.non_resource_URLs, f"{path}.nonResourceURLs")
        yield from _resource_faults(rule.resources, f"{path}.resources")
        yield from _stage_faults(rule.omit_stages, f"{path}.omitStages")
        if rule.non_resource_URLs and (rule.resources or rule.namespaces):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield field.invalid(f"{path}.nonResourceURLs", rule.non_resource_URLs, why)


def _stage_faults(stages: Sequence[str], path: str) -> Iterator[Cause]:
    for index, stage in enumerate(stages):
        if stage not in STAGES:
            yield field.invalid(f"{path}[{index}]", stage, f"allowed stages are {','.join(STAGES)}")


def _url_faults(urls: Sequence[str], path: str) -> Iterator[Cause]:
    for index, url in enumerate(urls):
        if url == ANY:
            continue
        where = f"{path}[{index}]"
        if not url.startswith("/"):
            yield field.invalid(where, url, "non-resource URL rules must begin with a '/' character")
        if ANY in url[:-1]:
            why = "non-resource URL wildcards '*' must be the final character of the rule"
            yield field.invalid(where, url, why)


def _resource_faults(resources: Sequence[GroupResources], path: str) -> Iterator[Cause]:
    for one in resources:
        if one.group not in ("", ANY):
            yield from field.all_invalid(f"{path}.group", one.group, names.dns1123_subdomain(one.group))
        if one.resource_names and not one.resources:
            why = "using resourceNames requires at least one resource"
            yield field.invalid(f"{path}.resourceNames", one.resource_names, why)


class _Resources(NamedTuple):
    """A GroupResources: the resources it names, with subresources, by what of them matches."""

    group: str
    any: bool
    combined: frozenset[str]
    """`pods`, `pods/log`."""
    subresources: frozenset[str]
    """`log` for `*/log`."""
    parents: frozenset[str]
    """`pods` for `pods/*`."""
    names: frozenset[str]

    @classmethod
    def compiled(cls, one: GroupResources) -> _Resources:
        listed = one.resources
        return cls(
            one.group,
            not listed or ANY in listed,
            frozenset(listed),
            frozenset(name[2:] for name in listed if name.startswith("*/")),
            frozenset(name[:-2] for name in listed if name.endswith("/*")),
            frozenset(one.resource_names),
        )

    def match(self, info: RequestInfo) -> bool:
        if self.group not in (info.api_group, ANY) or (self.names and info.name not in self.names):
            return False
        resource, subresource = info.resource, info.subresource
        if self.any or resource in self.parents:
            return True
        if not subresource:
            return resource in self.combined
        return subresource in self.subresources or f"{resource}/{subresource}" in self.combined


class _Rule(msgspec.Struct, frozen=True):
    amount: Amount
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    namespaces: frozenset[str]
    resources: tuple[_Resources, ...]
    paths: frozenset[str]
    prefixes: tuple[str, ...]

    @classmethod
    def compiled(cls, policy: Policy, rule: PolicyRule) -> _Rule:
        omits = rule.omit_managed_fields
        urls = rule.non_resource_URLs
        return cls(
            Amount(
                LEVELS[rule.level],
                frozenset((*policy.omit_stages, *rule.omit_stages)),
                policy.omit_managed_fields if omits is None else omits,
            ),
            frozenset(rule.users),
            frozenset(rule.user_groups),
            frozenset(rule.verbs),
            frozenset(rule.namespaces),
            tuple(map(_Resources.compiled, rule.resources)),
            frozenset(urls),
            tuple(url[:-1] for url in urls if url.endswith(ANY)),
        )

    def match(self, user: User | None, info: RequestInfo) -> bool:
        """Of a request whose verb is one of the rule's."""
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.namespaces or self.resources:
            return (
                info.is_resource_request
                and (not self.namespaces or info.namespace in self.namespaces)
                and (not self.resources or any(one.match(info) for one in self.resources))
            )
        if self.paths or self.prefixes:
            return not info.is_resource_request and (
                info.path in self.paths or info.path.startswith(self.prefixes)
            )
        return True


class Recording:
    """A policy, compiled. `failures`: whether of what it passes over that is recorded which fails."""

    def __init__(self, policy: Policy, *, failures: bool = False) -> None:
        self._rules = tuple(_Rule.compiled(policy, rule) for rule in policy.rules)
        self._of_verb = {verb: self._taking(verb) for rule in self._rules for verb in rule.verbs}
        self._of_others = tuple(rule for rule in self._rules if not rule.verbs)
        self._passed_over = FAILURES if failures else NOTHING
        self._remembered: dict[RepeatedRequest, Amount] = {}

    def of_repeated(self, repeated: RepeatedRequest) -> Amount:
        """As `of`, remembered: a policy never changes."""
        amount = self._remembered.get(repeated)
        if amount is None:
            if len(self._remembered) >= MOST_REPEATED:
                self._remembered.clear()
            amount = self._remembered[repeated] = self.of(repeated.user, repeated.info)
        return amount

    def of(self, user: User | None, info: RequestInfo) -> Amount:
        """`user` is None if nobody knows who sent the request: then no rule for users matches."""
        for rule in self._of_verb.get(info.verb, self._of_others):
            if rule.match(user, info):
                return rule.amount if rule.amount.level else self._passed_over
        return self._passed_over

    def _taking(self, verb: str) -> tuple[_Rule, ...]:
        return tuple(rule for rule in self._rules if not rule.verbs or verb in rule.verbs)
