"""Mutating admission policies: what their expressions make of an object.

Everything here is pure. An expression gives an `Object`, which is merged as by server-side apply, or a list
of `JSONPatch` operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podling.apiserver.admission.expressions import Allowance, BudgetError, Variables
from podling.apiserver.apply.apply import merge
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.schema import Keyed, Map, Node, Set, Struct, Value, schema_of
from podling.apiserver.cel.evaluation import BUDGET
from podling.apiserver.cel.values import Flag, Made
from podling.apiserver.patch.json_patch import json_patch
from podling.model.errors import Cause, StatusError
from podling.model.scheme import by_kind
from podling.model.types.admissionregistration import MutatingAdmissionPolicySpec, Mutation

OBJECT = "Object"
APPLY_CONFIGURATION = "ApplyConfiguration"


class MutationError(Exception):
    """A mutation fails; `failurePolicy` says what follows."""


def expression_of(mutation: Mutation) -> str:
    if mutation.patch_type == APPLY_CONFIGURATION:
        return mutation.apply_configuration.expression if mutation.apply_configuration else ""
    return mutation.json_patch.expression if mutation.json_patch else ""


def mutated(
    spec: MutatingAdmissionPolicySpec,
    mutation: Mutation,
    names: Mapping[str, Any],
    kind: tuple[str, str],
    *,
    quick: bool,
) -> Any:
    """What the mutation makes of `names["object"]`, which it does not change. `kind`: its apiVersion and
    kind. Raises MutationError, Cut."""
    budget = Allowance(BUDGET, Variables(spec.variables, names, quick=quick))
    try:
        told = budget.evaluated(expression_of(mutation), quick=quick)
    except BudgetError as error:
        raise MutationError(str(error)) from None
    if told.error:
        raise MutationError(told.error)
    if mutation.patch_type == APPLY_CONFIGURATION:
        return _applied(told.value, names["object"], kind)
    return _patched(told.value, names["object"])


def _applied(made: Any, live: Any, kind: tuple[str, str]) -> Any:
    _check_names(made)
    data = as_data(made)
    resource = by_kind(*kind)
    if resource is None:
        group, _, version = kind[0].rpartition("/")
        raise MutationError(
            "error applying patch: failed to convert patch object to typed object: no corresponding type for "
            f"{group}/{version}, Kind={kind[1]}"
        )
    schema = schema_of(resource.type)
    data = {**data, "apiVersion": kind[0], "kind": kind[1]}
    try:
        configured_fields(schema, data, "")
    except StatusError as error:
        why = error.message.partition("): ")[2] or error.message
        raise MutationError(
            f"error applying patch: failed to convert patch object to typed object: {why}"
        ) from None
    if atomic := list(_atomics(schema, data, "")):
        raise MutationError(
            "error applying patch: invalid ApplyConfiguration: "
            "may not mutate atomic arrays, maps or structs: " + ", ".join(atomic)
        )
    return merge(schema, live, data)


def _check_names(made: Any) -> None:
    """Raises MutationError if the type of an object is not that of the field it is for."""
    if isinstance(made, Made) and (faults := list(_misnamed(made, OBJECT))):
        raise MutationError("type mismatch: " + "\n".join(faults))


def _misnamed(made: Any, path: str) -> Iterator[str]:
    if isinstance(made, Made):
        if made.name != path:
            yield (
                f'unexpected type name "{made.name}", expected "{path}", which matches field name path from '
                "root Object type"
            )
        for name, value in made.fields.items():
            yield from _misnamed(value, f"{path}.{name}")
    elif isinstance(made, list):
        for one in made:
            yield from _misnamed(one, path)


def _atomics(node: Node, value: Any, path: str) -> Iterator[str]:
    """The paths of lists and maps that would be replaced as a whole."""
    if isinstance(node, Value) and isinstance(value, dict | list):
        yield path
    elif isinstance(node, Struct) and isinstance(value, dict):
        for name, below in value.items():
            if name in node.managed:
                yield from _atomics(node.managed[name][1], below, f"{path}.{name}")
    elif isinstance(node, Keyed) and isinstance(value, list):
        for index, below in enumerate(value):
            yield from _atomics(node.of, below, f"{path}[{index}]")
    else:
        assert isinstance(node, Value | Map | Set | Struct | Keyed)


def as_data(value: Any) -> Any:
    """A value of an expression as JSON has it. Raises MutationError for what it cannot hold."""
    if isinstance(value, Made):
        return {name: as_data(below) for name, below in value.fields.items()}
    if isinstance(value, dict):
        return {_text(key): as_data(below) for key, below in value.items()}
    if isinstance(value, list):
        return [as_data(below) for below in value]
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return int(value)
    raise MutationError("JSONPath valueExpression evaluated to a type that could not marshal to JSON")


def _text(key: Any) -> str:
    key = key.value if isinstance(key, Flag) else key
    return str(key).lower() if isinstance(key, bool) else str(key)


def _patched(made: Any, document: Any) -> Any:
    operations: list[dict[str, Any]] = []
    for one in made if isinstance(made, list) else ():
        fields = one.fields if isinstance(one, Made) else {}
        operation = {"op": fields.get("op", ""), "path": fields.get("path", "")}
        if fields.get("from"):
            operation["from"] = fields["from"]
        if "value" in fields:
            _check_object(fields["value"])
            operation["value"] = as_data(fields["value"])
        operations.append(operation)
    try:
        return json_patch(document, operations)
    except StatusError as error:
        why = error.causes[0].message if error.causes else error.message
        if why.startswith("testing "):
            return document
        raise MutationError(f"JSON Patch: {why}") from None


def _check_object(value: Any) -> None:
    """As `_check_names`; a part of an object may be of any type."""
    if isinstance(value, Made) and (faults := list(_misnamed(value, value.name))):
        raise MutationError("type mismatch: " + "\n".join(faults))


def encoded(data: Any) -> bytes:
    return msgspec.json.encode(data)


def refusal(error: StatusError, told: Sequence[str], reason: str) -> StatusError:
    """All denials in one error. `error`: the refusal of the write, whose message is left out."""
    error.message = told[0]
    error.reason = reason or error.reason
    error.causes = tuple(Cause("", one, "") for one in told)
    return error
