"""Which writes a webhook or a policy is about: its rules, its selectors, and what it excludes.

Everything here is pure. A rule is a RuleWithOperations of a webhook or a NamedRuleWithOperations of a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.model.errors import StatusError
from podling.model.selectors import EVERYTHING, Selector, from_label_selector
from podling.model.types.admissionregistration import NamedRuleWithOperations, RuleWithOperations
from podling.model.types.meta import LabelSelector

ALL = "*"
CONFIGURATIONS = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)
"""The resources of admissionregistration.k8s.io that nobody is asked about: who refused them could not be
removed again."""

EVERYTHING_RULE = RuleWithOperations(
    operations=[ALL], api_groups=[ALL], api_versions=[ALL], resources=["*/*"]
)
"""What the rules of a binding mean that has none."""

Rule = RuleWithOperations | NamedRuleWithOperations
NamespaceLabels = Callable[[str], Mapping[str, str]]
"""The labels of the namespace of a name. Raises StatusError 404."""


class Match(msgspec.Struct, frozen=True):
    """Compiled, once for each change of a webhook or policy."""

    rules: Sequence[Rule]
    excluded: Sequence[Rule] = ()
    namespaces: Selector = EVERYTHING
    objects: Selector = EVERYTHING
    equivalent: bool = True
    """matchPolicy is Equivalent: a rule for another version of the same object is one for this."""

    def form(self, attributes: Attributes, new: Any, old: Any, labels: NamespaceLabels) -> Form | None:
        """The form in which to show the write, or None if it is not what this is about. Raises StatusError
        404 if it would be, and its namespace is not known."""
        missing: StatusError | None = None
        try:
            if not self._selects_namespace(attributes, new, labels):
                return None
        except StatusError as error:
            missing = error
        if self.objects and not any(self._selects(attributes, obj) for obj in (new, old) if obj is not None):
            return None
        if self._ruled(self.excluded, attributes) is not None:
            return None
        found = self._ruled(self.rules, attributes)
        if found is not None and missing is not None:
            raise missing
        return found

    def _ruled(self, rules: Sequence[Rule], attributes: Attributes) -> Form | None:
        forms = attributes.sent.forms
        own, others = forms[0], forms[1:] if self.equivalent else ()
        if any(is_about(rule, attributes, own) for rule in rules):
            return own
        # Earlier rules come first, whatever the order of the versions.
        return next((form for rule in rules for form in others if is_about(rule, attributes, form)), None)

    def _selects(self, attributes: Attributes, obj: Any) -> bool:
        own = attributes.sent.forms[0]
        meta = getattr(own.read(obj), "metadata", None)
        # What has no labels, such as the options of a connection, is not selected by any.
        return meta is not None and self.objects.matches(meta.labels)

    def _selects_namespace(self, attributes: Attributes, new: Any, labels: NamespaceLabels) -> bool:
        if not self.namespaces:
            return True
        name = namespace_of(attributes)
        if not name:
            return True
        if is_namespace(attributes) and not attributes.subresource and new is not None:
            # Those it is to have.
            return self.namespaces.matches(new.metadata.labels)
        return self.namespaces.matches(labels(name))


def compiled(
    rules: Sequence[Rule],
    namespace_selector: LabelSelector | None,
    object_selector: LabelSelector | None,
    match_policy: str | None,
    excluded: Sequence[Rule] = (),
) -> Match:
    """From the fields of a webhook, or of matchConstraints or matchResources, which are valid and have their
    defaults."""
    return Match(
        rules, excluded, _selector(namespace_selector), _selector(object_selector), match_policy != "Exact"
    )


def _selector(selector: LabelSelector | None) -> Selector:
    return EVERYTHING if selector is None else from_label_selector(selector)


def is_asked_about(attributes: Attributes) -> bool:
    """Whether webhooks and policies are asked at all."""
    if not attributes.sent.forms:
        return False
    resource = attributes.resource
    return resource.group != "admissionregistration.k8s.io" or resource.plural not in CONFIGURATIONS


def is_about(rule: Rule, attributes: Attributes, form: Form) -> bool:
    return (
        may_be_about(rule, form, attributes.subresource, attributes.operation)
        and _is_in_scope(rule.scope, attributes)
        and _has_name(rule, attributes.name)
    )


def may_be_about(rule: Rule, form: Form, subresource: str, operation: Operation) -> bool:
    """Whether it is about some object of the resource."""
    return (
        _any_of(rule.operations, operation)
        and _any_of(rule.api_groups, form.group)
        and _any_of(rule.api_versions, form.version)
        and any(_names(resource, form.plural, subresource) for resource in rule.resources)
    )


def is_namespace(attributes: Attributes) -> bool:
    return attributes.resource.plural == "namespaces" and not attributes.resource.group


def namespace_of(attributes: Attributes) -> str:
    """The namespace a write is in; a Namespace is in itself."""
    return attributes.name if is_namespace(attributes) else attributes.namespace


def _any_of(listed: Sequence[str], value: str) -> bool:
    return ALL in listed or value in listed


def _is_in_scope(scope: str | None, attributes: Attributes) -> bool:
    if scope in (None, "", ALL):
        return True
    return (scope == "Namespaced") == bool(attributes.namespace and not is_namespace(attributes))


def _names(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, below = pattern.partition("/")
    return resource in (ALL, plural) and below in (ALL, subresource)


def _has_name(rule: Rule, name: str) -> bool:
    names = rule.resource_names if isinstance(rule, NamedRuleWithOperations) else ()
    return not names or name in names
