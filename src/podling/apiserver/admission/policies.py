"""Validating admission policies: what their expressions decide about a write.

Everything here is pure. A policy decides once for each of its bindings and each parameter of these; the first
denial of all is told, in Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.admission.expressions import SPACE, Allowance, BudgetError, Variables
from podling.apiserver.admission.matching import EVERYTHING_RULE, Match, Rule, compiled
from podling.apiserver.admission.plugin import Attributes
from podling.apiserver.cel.evaluation import BUDGET, Evaluated
from podling.apiserver.cel.values import type_of
from podling.model.errors import Cause, StatusError
from podling.model.types.admissionregistration import (
    MatchResources,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicySpec,
    Validation,
)

LONGEST_MESSAGE, LONGEST_ANNOTATION = 5 * 1024, 10 * 1024
CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
"""The code of a reason; any other is 422."""
INVALID = "Invalid"
FAILURES = "validation.policy.admission.k8s.io/validation_failure"


class Denial(NamedTuple):
    """`place`: of the decision among those of the policy."""

    message: str
    reason: str = ""
    place: int = 0


class Judged(NamedTuple):
    """What a policy says about a write with one parameter. `failures`: annotations that have no value, which
    deny whatever the binding's actions are."""

    denials: Sequence[Denial] = ()
    annotations: Mapping[str, str] = {}
    failures: Sequence[Denial] = ()


def match_of(resources: MatchResources | None, *, binding: bool = False) -> Match:
    """From matchConstraints, or matchResources of a binding, which may leave everything out."""
    found = resources or MatchResources()
    rules: Sequence[Rule] = found.resource_rules
    if binding and not rules:
        rules = [EVERYTHING_RULE]
    return compiled(
        rules,
        found.namespace_selector,
        found.object_selector,
        found.match_policy,
        found.exclude_resource_rules,
    )


def size_of(spec: ValidatingAdmissionPolicySpec) -> int:
    """Characters of all expressions."""
    return (
        sum(len(one.expression) + len(one.message_expression) for one in spec.validations)
        + sum(len(one.value_expression) for one in spec.audit_annotations)
        + sum(len(one.expression) for one in spec.variables)
    )


def judged(spec: ValidatingAdmissionPolicySpec, names: Mapping[str, Any], *, quick: bool) -> Judged:
    """What the policy decides, whose conditions are met. Raises Cut."""
    ignores = spec.failure_policy == "Ignore"
    budget = Allowance(BUDGET, Variables(spec.variables, names, quick=quick))
    try:
        told = [budget.evaluated(one.expression, quick=quick) for one in spec.validations]
    except BudgetError as error:
        return Judged([] if ignores else [Denial(str(error))])
    messages, spent = _messages(spec, names, budget.left, quick=quick)
    denials = [
        denial._replace(place=i)
        for i, (validation, value) in enumerate(zip(spec.validations, told, strict=True))
        if (denial := _denial(validation, value, messages[i], spent, ignores=ignores)) is not None
    ]
    annotations: dict[str, str] = {}
    failures: list[Denial] = []
    budget = Allowance(BUDGET, Variables(spec.variables, _unauthorized(names), quick=quick))
    try:
        for one in spec.audit_annotations:
            value = budget.evaluated(one.value_expression, quick=quick)
            if value.error:
                failures += [] if ignores else [Denial(value.error)]
            elif isinstance(value.value, str):
                if text := value.value.strip(SPACE):
                    annotations[one.key] = text
            elif value.value is not None:
                failures.append(Denial(_unfit(one.value_expression, value.value)))
    except BudgetError as error:
        return Judged([] if ignores else [Denial(str(error))])
    return Judged(denials, annotations, failures)


def _unauthorized(names: Mapping[str, Any]) -> dict[str, Any]:
    """Messages and annotations ask no authorizer."""
    return {name: value for name, value in names.items() if not name.startswith("authorizer")}


def _unfit(expression: str, value: Any) -> str:
    return (
        f"valueExpression '{expression}' resulted in unsupported return type: {type_of(value)}. Return type "
        "must be either string or null."
    )


def _messages(
    spec: ValidatingAdmissionPolicySpec, names: Mapping[str, Any], left: int, *, quick: bool
) -> tuple[list[str], str]:
    """The message of each validation, empty if it has no expression for one or that fails; and why no more
    were evaluated."""
    budget = Allowance(left, Variables(spec.variables, _unauthorized(names), quick=quick))
    made: list[str] = []
    try:
        for one in spec.validations:
            value: Any = ""
            if one.message_expression:
                value = budget.evaluated(one.message_expression, quick=quick).value
            text = value.strip(SPACE) if isinstance(value, str) else ""
            made.append("" if len(text.encode()) > LONGEST_MESSAGE or "\n" in text else text)
    except BudgetError as error:
        return [""] * len(spec.validations), str(error)
    return made, ""


def _denial(
    validation: Validation, told: Evaluated, message: str, spent: str, *, ignores: bool
) -> Denial | None:
    if told.error or spent:
        return None if ignores else Denial(told.error or f"failed messageExpression: {spent}")
    if told.value is True:
        return None
    expression = validation.expression.strip(SPACE)
    message = message or validation.message.strip(SPACE) or f"failed expression: {expression}"
    return Denial(message, validation.reason or INVALID)


def refusal(
    attributes: Attributes,
    policy: ValidatingAdmissionPolicy,
    binding: ValidatingAdmissionPolicyBinding | None,
    denial: Denial,
) -> StatusError:
    with_binding = f" with binding '{binding.metadata.name}'" if binding is not None else ""
    who = f"ValidatingAdmissionPolicy '{policy.metadata.name}'{with_binding}"
    why = f"{who} denied request: {denial.message}"
    error = attributes.forbidden(why)
    error.reason = denial.reason or INVALID
    error.code = CODES.get(error.reason, 422)
    error.causes = (Cause("", why, ""),)
    return error


def warning(policy: str, binding: str, denial: Denial) -> str:
    who = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}'"
    return f"Validation failed for {who}: {denial.message}"


def failure_annotation(binding: ValidatingAdmissionPolicyBinding, denial: Denial) -> str:
    failure = {
        "message": denial.message,
        "policy": binding.spec.policy_name,
        "binding": binding.metadata.name,
        "expressionIndex": denial.place,
        "validationActions": binding.spec.validation_actions,
    }
    return msgspec.json.encode([failure]).decode()


def joined(values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """The annotations of one policy: what its bindings say apart from each other is listed."""
    for key, told in values.items():
        yield key, ", ".join(dict.fromkeys(one[:LONGEST_ANNOTATION] for one in told))
