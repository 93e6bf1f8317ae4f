"""The rules of a schema (`x-kubernetes-validations`) hold for the defaults in it, too, which are evaluated as
if they had been there before (`apiserver/schema/cel/validation.go` of Kubernetes)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podling.apiserver.rules.custom_resources.values import A_STEP, Budget, TooCostlyError
from podling.apiserver.rules.custom_resources.walk import At
from podling.apiserver.rules.field import forbidden, invalid, required, shown
from podling.model.errors import Cause
from podling.model.types.apiextensions import JSONSchemaProps, ValidationRule

if TYPE_CHECKING:
    from podling.apiserver.rules.custom_resources.expressions import Verdict

NO_OVERLOAD = "call arguments did not match a supported operator, function or macro signature for rule: "
CANCELLED = "no further validation rules will be run due to call cost exceeds limit for rule: "
META = ("kind", "apiVersion", "metadata")
Verdicts = Mapping[int, Sequence["Verdict"]]
"""Of the rules of a schema, by its identity."""


def validate_default_rules(root: JSONSchemaProps, at: At, verdicts: Verdicts) -> list[Cause]:
    """The defaults are valid by their schemas otherwise. Only to be called in a thread."""
    judging = _Judging(root, verdicts)
    waiting, found = [(root, at)], list[Cause]()
    while waiting and not judging.is_over:
        schema, where = waiting.pop()
        if schema.default is not None:
            try:
                found += judging.faults(schema.default, schema, where.child("default"))
            except TooCostlyError:
                # Only who has rules pays for the library.
                from podling.apiserver.cel.evaluation import OUT_OF_BUDGET

                return [*found, invalid(str(where.child("default")), schema.type, OUT_OF_BUDGET)]
        inside = [
            (schema.properties[name], where.child("properties").key(name)) for name in schema.properties
        ]
        if isinstance(schema.items, JSONSchemaProps):
            inside.append((schema.items, where.child("items")))
        waiting += inside
    return found


class _Judging:
    """Of all defaults of a schema, within one budget."""

    def __init__(self, root: JSONSchemaProps, verdicts: Verdicts) -> None:
        from podling.apiserver.cel.evaluation import BUDGET

        self._root, self._verdicts = root, verdicts
        self._left, self._steps = BUDGET, Budget()
        self.is_over = False
        """A rule cost more than one may: no other is evaluated."""

    def faults(self, value: Any, schema: JSONSchemaProps, at: At) -> Iterator[Cause]:
        """Raises TooCostlyError."""
        waiting: list[tuple[Any, JSONSchemaProps, At]] = [(value, schema, at)]
        while waiting and not self.is_over:
            one, of, where = waiting.pop()
            if one is None:
                continue
            self._steps.spend(1)
            for cause in self._of_rules(one, of, where) if of.validations else ():
                self._steps.spend((len(cause.message) + len(cause.field)) // A_STEP)
                yield cause
            if isinstance(one, list) and isinstance(of.items, JSONSchemaProps):
                waiting += [(one[i], of.items, where.item(i)) for i in reversed(range(len(one)))]
            elif isinstance(one, dict):
                for name, inner in one.items():
                    if name in of.properties:
                        waiting.append((inner, of.properties[name], where.child(name)))
                    elif isinstance(of.additional_properties, JSONSchemaProps):
                        waiting.append((inner, of.additional_properties, where.key(name)))

    def _of_rules(self, value: Any, schema: JSONSchemaProps, at: At) -> Iterator[Cause]:
        from podling.apiserver.cel.values import Optional

        known = self._known(value, schema)
        for rule, verdict in zip(schema.validations, self._verdicts[id(schema)], strict=True):
            self._steps.spend(1)
            if self.is_over:
                return
            if verdict.fault:
                yield invalid(str(at), schema.type, f"rule compile error: {verdict.fault}")
            elif verdict.has_type:
                before = Optional(known) if rule.optional_old_self else known
                yield from self._of_rule(rule, {"self": known, "oldSelf": before}, value, schema, at)

    def _of_rule(
        self, rule: ValidationRule, names: Mapping[str, Any], value: Any, schema: JSONSchemaProps, at: At
    ) -> Iterator[Cause]:
        told = self._evaluated(rule.rule, names)
        of_rule = rule.message.strip() or rule.rule.strip()
        if told.error.startswith("no such overload"):
            yield invalid(str(at), schema.type, f"'{told.error}': {NO_OVERLOAD}{of_rule}")
        elif told.error.startswith("operation cancelled"):
            self.is_over = True
            yield invalid(str(at), schema.type, f"'{told.error}': {CANCELLED}{of_rule}")
        elif told.error:
            yield invalid(str(at), schema.type, f"{told.error} evaluating rule: {of_rule}")
        elif told.value is not True:
            where = str(at.child(rule.field_path.removeprefix(".")) if rule.field_path else at)
            message = rule.message.strip() or f"failed rule: {rule.rule.strip()}"
            if rule.message_expression:
                own = self._evaluated(rule.message_expression, names)
                text = own.value.strip() if isinstance(own.value, str) else ""
                message = text if text and "\n" not in text else message
            yield _fault(rule.reason, where, value, message)

    def _evaluated(self, text: str, names: Mapping[str, Any]) -> Any:
        from podling.apiserver.cel.evaluation import program

        told = program(text).evaluated(names)
        self._left -= told.cost
        if self._left < 0:
            raise TooCostlyError
        return told

    def _known(self, value: Any, schema: JSONSchemaProps) -> Any:
        """The value as expressions know it."""
        from podling.apiserver.cel.declared import RESERVED, escaped

        self._steps.spend(1)
        if schema.int_or_string or value is None:
            return value
        if isinstance(value, list) and isinstance(schema.items, JSONSchemaProps):
            return [self._known(one, schema.items) for one in value]
        if isinstance(value, dict) and isinstance(schema.additional_properties, JSONSchemaProps):
            return {name: self._known(one, schema.additional_properties) for name, one in value.items()}
        if isinstance(value, dict) and schema.type == "object":
            known = {
                name: self._known(value[name], schema.properties[name])
                for name in value
                if name in schema.properties
            }
            if schema.embedded_resource or schema is self._root:
                known = {**{name: value[name] for name in META if name in value}, **known}
            own = {name: one for name, one in known.items() if name in RESERVED}
            return {**{escaped(name): one for name, one in known.items() if escaped(name)}, **own}
        if schema.type == "number":
            return float(value)
        if schema.type == "integer":
            return int(value)
        return _of_format(value, schema.format) if schema.type == "string" else value


def _of_format(text: str, form: str) -> Any:
    from podling.apiserver.cel.operators import to_duration, to_timestamp
    from podling.apiserver.cel.values import CelError, Meter

    try:
        if form == "byte":
            return base64.b64decode(text)
        if form == "duration":
            return to_duration(Meter(0), text)
        if form in ("date", "date-time"):
            return to_timestamp(Meter(0), f"{text}T00:00:00Z" if form == "date" else text.upper())
    except (CelError, ValueError):
        pass
    return text


def _fault(reason: str | None, where: str, value: Any, message: str) -> Cause:
    """A value that has parts is not shown."""
    if reason == "FieldValueForbidden":
        return forbidden(where, message)
    if reason == "FieldValueRequired":
        return required(where, message)
    of_value = "" if isinstance(value, dict | list) else f": {shown(value)}"
    if reason == "FieldValueDuplicate":
        return Cause(reason, f"Duplicate value{of_value}", where)
    return Cause("FieldValueInvalid", f"Invalid value{of_value}: {message}", where)
