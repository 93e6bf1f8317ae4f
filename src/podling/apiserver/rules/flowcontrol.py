"""Validation of FlowSchemas and PriorityLevelConfigurations.

Those named `exempt` and `catch-all` are mandatory: their specs are fixed, but for the seats of `exempt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log2

import msgspec

from podling.apiserver.rules.field import (
    all_invalid,
    between,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.rules.flowcontrol import CATCH_ALL, EXEMPT, flow_schemas, priority_levels
from podling.model.types.flowcontrol import (
    FlowSchema,
    FlowSchemaCondition,
    FlowSubject,
    LimitResponse,
    NonResourcePolicyRule,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationCondition,
    QueuingConfiguration,
    ResourcePolicyRule,
)

MOST_PRECEDENCE = 10_000
METHODS = frozenset({"ByUser", "ByNamespace"})
SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
"""What says more of a subject of each kind, in the order in which it is told of."""
EVERY = "*"
VERBS = frozenset(
    ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
)
RESPONSES = frozenset({"Queue", "Reject"})
MOST_QUEUES = 10_000_000
MOST_ENTROPY = 60
"""Bits that choosing a hand of queues may take."""
NOT_NEGATIVE = "must be a non-negative integer"
POSITIVE = "must be positive"


def validate_schema(obj: FlowSchema) -> Iterator[Cause]:
    spec, name = obj.spec, obj.metadata.name
    precedence, path = spec.matching_precedence, "spec.matchingPrecedence"
    if precedence <= 0:
        yield invalid(path, precedence, "must be a positive value")
    if precedence > MOST_PRECEDENCE:
        yield invalid(path, precedence, f"must not be greater than {MOST_PRECEDENCE}")
    if precedence == 1 and name != EXEMPT:
        yield invalid(path, precedence, f"only the schema named '{EXEMPT}' may have matchingPrecedence 1")
    method = spec.distinguisher_method
    if method is not None and method.type not in METHODS:
        yield not_supported("spec.distinguisherMethod.type", internal(method), METHODS)
    level, path = spec.priority_level_configuration.name, "spec.priorityLevelConfiguration.name"
    if not level:
        yield required(path, "must reference a priority level")
    else:
        yield from all_invalid(path, level, names.dns1123_subdomain(level))
    for i, rule in enumerate(spec.rules):
        path = f"spec.rules[{i}]"
        if not rule.subjects:
            yield required(f"{path}.subjects", "subjects must contain at least one value")
        for j, subject in enumerate(rule.subjects):
            yield from validate_subject(subject, f"{path}.subjects[{j}]")
        if not (rule.resource_rules or rule.non_resource_rules):
            yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
        for j, one in enumerate(rule.resource_rules):
            yield from validate_resources(one, f"{path}.resourceRules[{j}]")
        for j, other in enumerate(rule.non_resource_rules):
            yield from validate_paths(other, f"{path}.nonResourceRules[{j}]")
    if name in (EXEMPT, CATCH_ALL) and spec != flow_schemas()[name].spec:
        yield invalid("spec", internal(spec), f"spec of '{name}' must equal the fixed value")
    yield from validate_conditions(obj.status.conditions)


def validate_subject(subject: FlowSubject, path: str) -> Iterator[Cause]:
    if subject.kind not in SUBJECTS:
        yield not_supported(f"{path}.kind", subject.kind, frozenset(SUBJECTS))
        return
    said = {"ServiceAccount": subject.service_account, "User": subject.user, "Group": subject.group}
    field = SUBJECTS[subject.kind]
    if said[subject.kind] is None:
        yield required(f"{path}.{field}", f"{field} is required when subject kind is '{subject.kind}'")
    elif subject.kind != "ServiceAccount":
        named = subject.user if subject.kind == "User" else subject.group
        if named is not None and not named.name:
            yield required(f"{path}.{field}.name")
    elif (account := subject.service_account) is not None:
        if not account.name:
            yield required(f"{path}.{field}.name")
        elif account.name != EVERY:
            yield from all_invalid(
                f"{path}.{field}.name", account.name, names.dns1123_subdomain(account.name)
            )
        if not account.namespace:
            yield required(f"{path}.{field}.namespace", "must specify namespace for service account")
        else:
            faults = names.dns1123_label(account.namespace)
            yield from all_invalid(f"{path}.{field}.namespace", account.namespace, faults)
    for kind, other in SUBJECTS.items():
        if kind != subject.kind and said[kind] is not None:
            yield forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{kind}'")


def validate_resources(rule: ResourcePolicyRule, path: str) -> Iterator[Cause]:
    yield from _validate_verbs(rule.verbs, path)
    for field, values, one, many in (
        ("apiGroups", rule.api_groups, "api group", "api groups"),
        ("resources", rule.resources, "resource", "resources"),
    ):
        if not values:
            yield required(f"{path}.{field}", f"resource rules must supply at least one {one}")
        yield from _validate_alone(values, f"{path}.{field}", many)
    where = f"{path}.namespaces"
    if not rule.namespaces and not rule.cluster_scope:
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        yield required(where, why)
    if EVERY in rule.namespaces:
        yield from _validate_alone(rule.namespaces, where, "namespaces")
        return
    for i, namespace in enumerate(rule.namespaces):
        for fault in names.dns1123_label(namespace):
            why = f"each member of this list must be '*' or a DNS-1123 label; {fault}"
            yield invalid(f"{where}[{i}]", namespace, why)


def validate_paths(rule: NonResourcePolicyRule, path: str) -> Iterator[Cause]:
    yield from _validate_verbs(rule.verbs, path)
    where = f"{path}.nonResourceURLs"
    if not rule.non_resource_urls:
        yield required(where, "nonResourceURLs must contain at least one value")
    if EVERY in rule.non_resource_urls:
        yield from _validate_alone(rule.non_resource_urls, where, "non-resource URLs")
        return
    for i, url in enumerate(rule.non_resource_urls):
        if why := fault_of_url(url):
            yield invalid(f"{where}[{i}]", url, why)


def fault_of_url(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count(EVERY)
    is_suffix = stars == 1 and url.endswith("/*")
    return "wildcard can only do suffix matching" if stars and not is_suffix else ""


def _validate_verbs(verbs: Sequence[str], path: str) -> Iterator[Cause]:
    if not verbs:
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    yield from _validate_alone(verbs, f"{path}.verbs", "verbs")
    if EVERY not in verbs and not VERBS.issuperset(verbs):
        yield not_supported(f"{path}.verbs", list(verbs), VERBS)


def _validate_alone(values: Sequence[str], path: str, what: str) -> Iterator[Cause]:
    """`*` stands for all, so nothing stands beside it."""
    if len(values) > 1 and EVERY in values:
        yield invalid(path, list(values), f"if '*' is present, must not specify other {what}")


def validate_level(obj: PriorityLevelConfiguration) -> Iterator[Cause]:
    spec, name = obj.spec, obj.metadata.name
    if (name == EXEMPT) != (spec.type == "Exempt"):
        yield invalid("spec.type", spec.type, f"must be 'Exempt' if and only if `name` is '{EXEMPT}'")
    match spec.type:
        case "Exempt":
            if spec.limited is not None:
                yield forbidden("spec.limited", "must be nil if the type is not Limited")
            if spec.exempt is not None:
                yield from _validate_shares(spec.exempt.nominal_concurrency_shares, "spec.exempt")
                yield from _validate_lendable(spec.exempt.lendable_percent, "spec.exempt")
        case "Limited":
            if spec.exempt is not None:
                yield forbidden("spec.exempt", "must be nil if the type is Limited")
            if spec.limited is None:
                yield required("spec.limited", "must not be empty when type is Limited")
            else:
                yield from _validate_shares(spec.limited.nominal_concurrency_shares, "spec.limited")
                yield from validate_response(spec.limited.limit_response, "spec.limited.limitResponse")
                yield from _validate_lendable(spec.limited.lendable_percent, "spec.limited")
                borrowed = spec.limited.borrowing_limit_percent
                if borrowed is not None and borrowed < 0:
                    yield invalid(
                        "spec.limited.borrowingLimitPercent", borrowed, f"if specified, {NOT_NEGATIVE}"
                    )
        case _:
            yield not_supported("spec.type", spec.type, frozenset({"Exempt", "Limited"}))
    if name in (EXEMPT, CATCH_ALL):
        fixed = priority_levels()[name].spec
        own = msgspec.structs.replace(spec, exempt=fixed.exempt) if name == EXEMPT else spec
        if own != fixed:
            part = " except the 'spec.exempt' field" if name == EXEMPT else ""
            yield invalid("spec", internal(spec), f"spec of '{name}'{part} must equal the fixed value")
    yield from validate_conditions(obj.status.conditions)


def _validate_shares(shares: int | None, path: str) -> Iterator[Cause]:
    if shares is not None and shares < 0:
        yield invalid(f"{path}.nominalConcurrencyShares", shares, NOT_NEGATIVE)


def _validate_lendable(percent: int | None, path: str) -> Iterator[Cause]:
    if percent is not None:
        yield from between(f"{path}.lendablePercent", percent, 0, 100)


def validate_response(response: LimitResponse, path: str) -> Iterator[Cause]:
    queuing, where = response.queuing, f"{path}.queuing"
    match response.type:
        case "Reject":
            if queuing is not None:
                yield forbidden(where, "must be nil if limited.limitResponse.type is not Limited")
        case "Queue":
            if queuing is None:
                yield required(where, "must not be empty if limited.limitResponse.type is Limited")
            else:
                yield from validate_queuing(queuing, where)
        case other:
            yield not_supported(f"{path}.type", other, RESPONSES)


def validate_queuing(queuing: QueuingConfiguration, path: str) -> Iterator[Cause]:
    queues, hand = queuing.queues, queuing.hand_size
    if queuing.queue_length_limit <= 0:
        yield invalid(f"{path}.queueLengthLimit", queuing.queue_length_limit, POSITIVE)
    if queues <= 0:
        yield invalid(f"{path}.queues", queues, POSITIVE)
    elif queues > MOST_QUEUES:
        yield invalid(f"{path}.queues", queues, f"must not be greater than {MOST_QUEUES}")
    if hand <= 0:
        yield invalid(f"{path}.handSize", hand, POSITIVE)
    elif hand > queues:
        yield invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif ceil(log2(queues) * hand) > MOST_ENTROPY:
        why = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than"
        yield invalid(f"{path}.handSize", hand, f"{why} {MOST_ENTROPY}")


def validate_conditions(
    conditions: Sequence[FlowSchemaCondition | PriorityLevelConfigurationCondition],
) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        path = f"status.conditions[{i}].type"
        if condition.type in seen:
            yield duplicate(path, condition.type)
        seen.add(condition.type)
        if not condition.type:
            yield required(path)
