"""The kinds of admissionregistration.k8s.io/v1: webhooks and policies that admit or change what is written.

Webhooks (`admission/webhooks.py`) are asked, and policies (`admission/policy_plugins.py`) evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from podling.apiserver.cel.checker import Expression, faults
from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.admission_registration import (
    Faults,
    validate_binding,
    validate_mutating_policy,
    validate_policy,
    validate_type_checking,
    validate_webhooks,
)
from podling.apiserver.rules.conditions import validate_conditions
from podling.apiserver.rules.expressions import (
    SPACE,
    expressions_of_mutating_policy,
    expressions_of_policy,
    expressions_of_webhooks,
)
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.selectors import go_text
from podling.model.types.admissionregistration import (
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    NamedRuleWithOperations,
    ParamRef,
    RuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from podling.model.types.meta import KubeObject, LabelSelector

T = TypeVar("T", bound=KubeObject)

TIMEOUT = 10
HTTPS_PORT = 443
UNSET = "<unset>"
PARAM_KIND = Column("ParamKind", description="The kind of the objects that its expressions get.")


class _Registration(Kind[T]):
    """What is the same for all of them: names of clusters' own objects, and rules for the rest."""

    has_generation = True
    updates_unconditionally = False
    validates_long = True

    def validate(self, obj: T) -> list[Cause]:
        written = {path: one for path, one in self.expressions(obj) if one.text.strip(SPACE)}
        return self._faults(obj, faults(written) if written else {})

    def validate_changed(self, new: T, old: T) -> list[Cause]:
        standing = list(self.expressions(old))
        return self._faults(new, {}) if list(self.expressions(new)) == standing else self.validate(new)

    def _faults(self, obj: T, found: Faults) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False, standard=False),
            *self.validate_fields(obj, found),
        ]

    def expressions(self, obj: T) -> Iterable[tuple[str, Expression]]:
        """Every expression by its path, in the order in which they know each other."""
        return ()

    def validate_fields(self, obj: T, found: Faults) -> Iterator[Cause]:
        """`found`: what is wrong with the expressions."""
        raise NotImplementedError


class _Webhooks(_Registration[Any]):
    columns = (NAME, Column("Webhooks", "integer", description="How many webhooks are asked."), AGE)

    def default(self, obj: Any) -> None:
        for webhook in obj.webhooks:
            _default_webhook(webhook)

    def expressions(self, obj: Any) -> Iterable[tuple[str, Expression]]:
        return expressions_of_webhooks(obj.webhooks)

    def validate_fields(self, obj: Any, found: Faults) -> Iterator[Cause]:
        return validate_webhooks(obj.webhooks, found)

    def row(self, obj: Any, now: datetime) -> list[Any]:
        return [obj.metadata.name, len(obj.webhooks), age(obj.metadata.creation_timestamp, now)]


def _default_webhook(webhook: ValidatingWebhook | MutatingWebhook) -> None:
    if webhook.failure_policy is None:
        webhook.failure_policy = "Fail"
    if webhook.match_policy is None:
        webhook.match_policy = "Equivalent"
    if webhook.namespace_selector is None:
        webhook.namespace_selector = LabelSelector()
    if webhook.object_selector is None:
        webhook.object_selector = LabelSelector()
    if webhook.timeout_seconds is None:
        webhook.timeout_seconds = TIMEOUT
    if isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy is None:
        webhook.reinvocation_policy = "Never"
    service = webhook.client_config.service
    if service is not None and service.port is None:
        service.port = HTTPS_PORT
    _default_rules(webhook.rules)


def _default_rules(rules: Sequence[RuleWithOperations | NamedRuleWithOperations]) -> None:
    for rule in rules:
        if rule.scope is None:
            rule.scope = "*"


def _default_match(match: MatchResources | None) -> None:
    if match is None:
        return
    if match.match_policy is None:
        match.match_policy = "Equivalent"
    if match.namespace_selector is None:
        match.namespace_selector = LabelSelector()
    if match.object_selector is None:
        match.object_selector = LabelSelector()
    _default_rules(match.resource_rules)
    _default_rules(match.exclude_resource_rules)


class ValidatingWebhookConfigurations(_Webhooks):
    resource = resource_of(ValidatingWebhookConfiguration)


class MutatingWebhookConfigurations(_Webhooks):
    resource = resource_of(MutatingWebhookConfiguration)


class _Policies(_Registration[Any]):
    def default(self, obj: Any) -> None:
        if obj.spec.failure_policy is None:
            obj.spec.failure_policy = "Fail"
        _default_match(obj.spec.match_constraints)

    def row(self, obj: Any, now: datetime) -> list[Any]:
        steps = obj.spec.validations if hasattr(obj.spec, "validations") else obj.spec.mutations
        kind = obj.spec.param_kind
        return [
            obj.metadata.name,
            len(steps),
            UNSET if kind is None else f"{kind.api_version}/{kind.kind}",
            age(obj.metadata.creation_timestamp, now),
        ]


def _validate_status(new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy) -> Iterator[Cause]:
    yield from validate_type_checking(new.status.type_checking, "status.typeChecking")
    yield from validate_conditions(new.status.conditions, "status.conditions", missing="")


class ValidatingAdmissionPolicies(_Policies, Controlled[ValidatingAdmissionPolicy]):
    resource = resource_of(ValidatingAdmissionPolicy)
    standard_finalizers = False
    subresources = {"status": Status(_validate_status, keeps_metadata=True, applies_none=True)}
    columns = (
        NAME,
        Column("Validations", "integer", description="How many expressions must hold."),
        PARAM_KIND,
        AGE,
    )

    def expressions(self, obj: ValidatingAdmissionPolicy) -> Iterable[tuple[str, Expression]]:
        return expressions_of_policy(obj.spec)

    def validate_fields(self, obj: ValidatingAdmissionPolicy, found: Faults) -> Iterator[Cause]:
        return validate_policy(obj.spec, obj.metadata.name, found)


class MutatingAdmissionPolicies(_Policies):
    resource = resource_of(MutatingAdmissionPolicy)
    columns = (
        NAME,
        Column("Mutations", "integer", description="How many changes it makes."),
        PARAM_KIND,
        AGE,
    )

    def expressions(self, obj: MutatingAdmissionPolicy) -> Iterable[tuple[str, Expression]]:
        return expressions_of_mutating_policy(obj.spec)

    def validate_fields(self, obj: MutatingAdmissionPolicy, found: Faults) -> Iterator[Cause]:
        return validate_mutating_policy(obj.spec, found)


class _Bindings(_Registration[Any]):
    columns = (
        NAME,
        Column("PolicyName", description="The policy that is put into force."),
        Column("ParamRef", description="The object that its expressions get."),
        AGE,
    )

    def default(self, obj: Any) -> None:
        _default_match(obj.spec.match_resources)

    def validate_fields(self, obj: Any, found: Faults) -> Iterator[Cause]:
        return validate_binding(obj.spec)

    def row(self, obj: Any, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.spec.policy_name,
            _parameter(obj.spec.param_ref),
            age(obj.metadata.creation_timestamp, now),
        ]


def _parameter(reference: ParamRef | None) -> str:
    if reference is None:
        return UNSET
    if reference.selector is not None:
        return go_text(reference.selector)
    return f"{reference.namespace or '*'}/{reference.name}"


class ValidatingAdmissionPolicyBindings(_Bindings):
    resource = resource_of(ValidatingAdmissionPolicyBinding)


class MutatingAdmissionPolicyBindings(_Bindings):
    resource = resource_of(MutatingAdmissionPolicyBinding)
