"""Which FlowSchema a request belongs to, and which of its flows. Pure.

Of the schemas that match, the one with the lowest precedence counts; their names decide between equals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from podling.apiserver.request.request import RequestInfo, User
from podling.model.types.flowcontrol import (
    FlowSchema,
    FlowSubject,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
)

ALL = "*"
ACCOUNT = "system:serviceaccount:"


def in_order(schemas: Iterable[FlowSchema], levels: Collection[str]) -> list[FlowSchema]:
    """Those whose priority level is among `levels`, in the order in which they are asked."""
    return sorted(
        (one for one in schemas if one.spec.priority_level_configuration.name in levels),
        key=lambda one: (one.spec.matching_precedence, one.metadata.name),
    )


def matches(schema: FlowSchema, user: User, info: RequestInfo) -> bool:
    return any(
        any(is_subject(one, user) for one in rule.subjects) and covers(rule, info)
        for rule in schema.spec.rules
    )


def distinguisher(schema: FlowSchema, user: User, info: RequestInfo) -> str:
    """What tells the flow of a request from the others of its schema."""
    match schema.spec.distinguisher_method and schema.spec.distinguisher_method.type:
        case "ByUser":
            return user.name
        case "ByNamespace":
            return info.namespace
    return ""


def covers(rule: PolicyRulesWithSubjects, info: RequestInfo) -> bool:
    if info.is_resource_request:
        return any(covers_resource(one, info) for one in rule.resource_rules)
    return any(covers_path(one, info) for one in rule.non_resource_rules)


def is_subject(subject: FlowSubject, user: User) -> bool:
    if subject.user is not None:
        return subject.user.name in (ALL, user.name)
    if subject.group is not None:
        return subject.group.name == ALL or subject.group.name in user.groups
    if (account := subject.service_account) is not None:
        those = f"{ACCOUNT}{account.namespace}:"
        return user.name.startswith(those) if account.name == ALL else user.name == those + account.name
    return False


def covers_resource(rule: ResourcePolicyRule, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (
        _has(rule.verbs, info.verb)
        and _has(rule.api_groups, info.api_group)
        and _has(rule.resources, resource)
    ):
        return False
    return _has(rule.namespaces, info.namespace) if info.namespace else rule.cluster_scope


def covers_path(rule: NonResourcePolicyRule, info: RequestInfo) -> bool:
    """A path stands for all below it, too: that is how `/livez/ping` is a health check."""
    return _has(rule.verbs, info.verb) and any(
        url in (ALL, info.path) or info.path.startswith(f"{url.rstrip('*/')}/")
        for url in rule.non_resource_urls
    )


def _has(values: Collection[str], value: str) -> bool:
    return value in values or ALL in values
