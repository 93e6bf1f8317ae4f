"""Where the objects of admissionregistration.k8s.io have expressions of CEL, and what each may name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from podling.apiserver.cel.checker import Expression
from podling.model.types.admissionregistration import (
    ApplyConfiguration,
    JSONPatch,
    MatchCondition,
    MutatingAdmissionPolicySpec,
    MutatingWebhook,
    ValidatingAdmissionPolicySpec,
    ValidatingWebhook,
)

BOOL, STRING, NULL, OBJECT, LIST_OF_PATCHES = "bool", "string", "null_type", "Object", "list(JSONPatch)"
APPLY_CONFIGURATION, JSON_PATCH = "ApplyConfiguration", "JSONPatch"
SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What Go calls white space."""
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function"),
        *("if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


def expressions_of_webhooks(
    webhooks: Sequence[ValidatingWebhook | MutatingWebhook],
) -> Iterator[tuple[str, Expression]]:
    """Every expression by its path."""
    for i, webhook in enumerate(webhooks):
        yield from _expressions_of(webhook.match_conditions, f"webhooks[{i}].matchConditions")


def _expressions_of(
    conditions: list[MatchCondition], path: str, *, params: bool = False
) -> Iterator[tuple[str, Expression]]:
    for i, condition in enumerate(conditions):
        text = condition.expression.strip(SPACE)
        yield f"{path}[{i}].expression", Expression(text, (BOOL,), params=params)


def expressions_of_policy(spec: ValidatingAdmissionPolicySpec) -> Iterator[tuple[str, Expression]]:
    """Every expression by its path."""
    params, composed = spec.param_kind is not None, bool(spec.variables)
    yield from _expressions_of(spec.match_conditions, "spec.matchConditions", params=params)
    yield from _variables_of(spec)
    for i, one in enumerate(spec.validations):
        path = f"spec.validations[{i}]"
        yield f"{path}.expression", Expression(one.expression, (BOOL,), params=params, composed=composed)
        message = Expression(
            one.message_expression, (STRING,), params=params, authorizer=False, composed=composed
        )
        yield f"{path}.messageExpression", message
    for i, annotation in enumerate(spec.audit_annotations):
        value = Expression(
            annotation.value_expression.strip(SPACE), (STRING, NULL), params=params, composed=composed
        )
        yield f"spec.auditAnnotations[{i}].valueExpression", value


def expressions_of_mutating_policy(spec: MutatingAdmissionPolicySpec) -> Iterator[tuple[str, Expression]]:
    """Every expression by its path."""
    params = spec.param_kind is not None
    yield from _expressions_of(spec.match_conditions, "spec.matchConditions", params=params)
    yield from _variables_of(spec)
    for i, mutation in enumerate(spec.mutations):
        part: JSONPatch | ApplyConfiguration | None = mutation.json_patch
        wire, type_ = "jsonPatch", LIST_OF_PATCHES
        if mutation.patch_type == APPLY_CONFIGURATION:
            part, wire, type_ = mutation.apply_configuration, "applyConfiguration", OBJECT
        if part is not None:
            made = Expression(part.expression, (type_,), params=params, composed=True, mutates=True)
            yield f"spec.mutations[{i}].{wire}.expression", made


def _variables_of(
    spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec,
) -> Iterator[tuple[str, Expression]]:
    params = spec.param_kind is not None
    for i, one in enumerate(spec.variables):
        name = one.name if is_identifier(one.name) else ""
        variable = Expression(one.expression, variable=name, params=params, composed=True)
        yield f"spec.variables[{i}].expression", variable


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and name not in _RESERVED
