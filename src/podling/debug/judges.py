"""Which webhooks and policies of a cluster are asked about a debug container, or a pod for one, as far as
their rules and selectors tell. Expressions (`matchConditions`) are not evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from podling.model.selectors import EVERYTHING, from_label_selector
from podling.model.types.admissionregistration import (
    MutatingWebhookConfiguration,
    NamedRuleWithOperations,
    RuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from podling.model.types.meta import LabelSelector

Rules = Sequence[RuleWithOperations] | Sequence[NamedRuleWithOperations]
Labels = Mapping[str, str]
ALL = "*"
GROUP, VERSION, RESOURCE = "", "v1", "pods"


class Asked(NamedTuple):
    """What is done to a pod. `labels` are the pod's and `of_namespace` its namespace's."""

    operation: str
    subresource: str
    labels: Labels
    of_namespace: Labels

    def is_named(self, resource: str) -> bool:
        """Whether a rule means it that names this resource."""
        whole, _, below = resource.partition("/")
        return whole in (RESOURCE, ALL) and below in (self.subresource, ALL)


def webhooks(
    configurations: Iterable[MutatingWebhookConfiguration | ValidatingWebhookConfiguration], asked: Asked
) -> list[str]:
    """The names of those that are asked."""
    return [
        one.name
        for configuration in configurations
        for one in configuration.webhooks
        if _is_asked(one.rules, asked)
        and _selects(one.namespace_selector, asked.of_namespace)
        and _selects(one.object_selector, asked.labels)
    ]


def policies(
    found: Iterable[ValidatingAdmissionPolicy],
    bindings: Iterable[ValidatingAdmissionPolicyBinding],
    asked: Asked,
) -> Iterator[str]:
    """The names of those that are asked, each with what its bindings do."""
    actions: dict[str, set[str]] = {}
    for binding in bindings:
        narrowed = binding.spec.match_resources
        if narrowed is None or (
            (not narrowed.resource_rules or _is_asked(narrowed.resource_rules, asked))
            and _selects(narrowed.namespace_selector, asked.of_namespace)
            and _selects(narrowed.object_selector, asked.labels)
        ):
            actions.setdefault(binding.spec.policy_name, set()).update(binding.spec.validation_actions)
    for policy in found:
        match = policy.spec.match_constraints
        if (
            policy.metadata.name in actions
            and match is not None
            and _is_asked(match.resource_rules, asked)
            and not _is_asked(match.exclude_resource_rules, asked)
            and _selects(match.namespace_selector, asked.of_namespace)
            and _selects(match.object_selector, asked.labels)
        ):
            yield f"{policy.metadata.name} ({', '.join(sorted(actions[policy.metadata.name]))})"


def _selects(selector: LabelSelector | None, labels: Labels) -> bool:
    return (EVERYTHING if selector is None else from_label_selector(selector)).matches(labels)


def _is_asked(rules: Rules, asked: Asked) -> bool:
    return any(
        {ALL, asked.operation} & set(rule.operations)
        and {ALL, GROUP} & set(rule.api_groups)
        and {ALL, VERSION} & set(rule.api_versions)
        and any(map(asked.is_named, rule.resources))
        and rule.scope in (None, "", ALL, "Namespaced")
        for rule in rules
    )
