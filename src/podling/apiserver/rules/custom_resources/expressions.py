"""The expressions in a schema for custom resources (`x-kubernetes-validations`): whether they compile,
whether they may name what was there before, and whether they may cost what they do.

What a rule costs is what its expression costs at most, times the number of values that the rule is about.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

from podling.apiserver.cel.checker import MANY, apart, is_long
from podling.apiserver.rules.custom_resources.walk import At
from podling.apiserver.rules.field import forbidden, internal, internal_error, invalid
from podling.model.errors import Cause
from podling.model.types.apiextensions import JSONSchemaProps, ValidationRule

BOOL, STRING = "bool", "string"
RULE_LIMIT, SCHEMA_LIMIT = 10_000_000, 100_000_000
"""What a rule may cost, and those of one schema together."""
SHARE = SCHEMA_LIMIT // 100
MOST_NAMED = 4
"""Of the rules that cost more than that, the most expensive are named when all together cost too much."""
MOST = (1 << 64) - 1
ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
    "strings are declared)"
)
NO_TYPE = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to "
    "convert structural schema to CEL declarations"
)
PROGRAM = "from podling.apiserver.rules.custom_resources.expressions import main; main()"
_LITERAL = re.compile(
    r"//[^\n]*|[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")", re.DOTALL
)
_OLD = re.compile(r"(?<![.\w])oldSelf\b")


class Ruled(NamedTuple):
    """A schema with rules, where it stands, the innermost list around it whose items nothing tells apart, if
    any, and how many values there are of it, None if that has no bound."""

    schema: JSONSchemaProps
    at: At
    uncorrelated: At | None = None
    values: int | None = 1
    is_open: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """Of a rule: what is wrong with it and with its messageExpression, and what they cost at most. `bound`:
    of the number of values, where nothing else bounds it. `has_type`: whether the type of the value is
    known."""

    fault: str = ""
    cost: int = 0
    message_fault: str = ""
    message_cost: int = 0
    bound: int = 1
    has_type: bool = True


def rules_in(root: JSONSchemaProps, at: At) -> Iterator[Ruled]:
    """The schemas with rules. Those inside come before those outside."""
    waiting = [Ruled(root, at)]
    while waiting:
        one = waiting.pop()
        schema, at = one.schema, one.at
        if one.is_open:
            yield one
            continue
        if schema.validations:
            waiting.append(one._replace(is_open=True))
        if isinstance(schema.items, JSONSchemaProps):
            apart = one.uncorrelated if schema.list_type == "map" else one.uncorrelated or at
            count = _times(one.values, schema.max_items)
            waiting.append(Ruled(schema.items, at.child("items"), apart, count))
        for name, inner in sorted(schema.properties.items(), reverse=True):
            waiting.append(Ruled(inner, at.child("properties").key(name), one.uncorrelated, one.values))
        if isinstance(schema.additional_properties, JSONSchemaProps):
            inner, count = schema.additional_properties, _times(one.values, schema.max_properties)
            waiting.append(Ruled(inner, at.child("additionalProperties"), one.uncorrelated, count))


def _times(count: int | None, most: int | None) -> int | None:
    return None if count is None or most is None else min(MOST, count * max(0, most))


def validate_rules(root: JSONSchemaProps, at: At) -> list[Cause]:
    """What is wrong with the rules of a schema that is otherwise valid. Only to be called in a thread: it may
    wait for a process. Raises StatusError 500 if that is lost."""
    ruled = list(rules_in(root, at))
    if not ruled:
        return []
    every, costs, causes = iter(_verdicts_anywhere(root, ruled)), list[tuple[int, str]](), list[Cause]()
    of_schemas = {id(one.schema): list(islice(every, len(one.schema.validations))) for one in ruled}
    from podling.apiserver.rules.custom_resources.default_rules import validate_default_rules

    # What is wrong with the defaults is told alone.
    if faults := validate_default_rules(root, at, of_schemas):
        return faults
    for one in ruled:
        for number, rule in enumerate(one.schema.validations):
            verdict = of_schemas[id(one.schema)][number]
            if not verdict.has_type:
                if number == 0:
                    causes.append(internal_error(str(one.at.child("x-kubernetes-validations")), NO_TYPE))
                continue
            where = one.at.child("x-kubernetes-validations").item(number)
            causes += _validate_rule(rule, where, one, verdict, costs)
    return [*causes, *_validate_total(costs, at)]


def _validate_rule(
    rule: ValidationRule, at: At, ruled: Ruled, verdict: Verdict, costs: list[tuple[int, str]]
) -> Iterator[Cause]:
    """`costs`: where what the rule costs is added, and its path."""
    where, of_message = str(at.child("rule")), str(at.child("messageExpression"))
    uses_old = not verdict.fault and _OLD.search(_LITERAL.sub(" ", rule.rule)) is not None
    count = verdict.bound if ruled.values is None else ruled.values
    yield from _costs(where, min(MOST, verdict.cost * count), "rule", costs)
    if verdict.fault:
        yield invalid(where, internal(rule), verdict.fault)
    elif verdict.message_fault:
        yield invalid(of_message, internal(rule), verdict.message_fault)
    else:
        yield from _costs(of_message, verdict.message_cost, "messageExpression", costs)
    if uses_old and ruled.uncorrelated is not None:
        why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid(where, rule.rule, f"{why} {ruled.uncorrelated}")
    if rule.optional_old_self is not None and not uses_old:
        path, why = str(at.child("optionalOldSelf")), "may not be set if oldSelf is not used in rule"
        yield invalid(path, rule.optional_old_self, why)


def _costs(where: str, cost: int, what: str, costs: list[tuple[int, str]]) -> Iterator[Cause]:
    costs.append((cost, where))
    if cost > RULE_LIMIT:
        yield forbidden(where, f"estimated {what} cost {_exceeds(cost, RULE_LIMIT)}")


def _validate_total(costs: list[tuple[int, str]], at: At) -> Iterator[Cause]:
    total = min(MOST, sum(cost for cost, _ in costs))
    if total <= SCHEMA_LIMIT:
        return
    expensive = sorted((one for one in costs if one[0] > SHARE), key=lambda one: -one[0])
    for _, where in expensive[:MOST_NAMED]:
        why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        yield forbidden(where, why)
    what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    yield forbidden(str(at), f"{what} {_exceeds(total, SCHEMA_LIMIT)}")


def _exceeds(cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100" if factor > 100 else f"{factor:.6f}" if factor < 1.5 else f"{factor:.1f}"
    return f"exceeds budget by factor of {shown}x {ADVICE}"


def _verdicts_anywhere(root: JSONSchemaProps, ruled: list[Ruled]) -> list[Verdict]:
    """Those of all rules, in order. What is long is compiled in a process of its own (`cel/checker.py`)."""
    texts = [
        text
        for one in ruled
        for rule in one.schema.validations
        for text in (rule.rule, rule.message_expression)
    ]
    if len(ruled) <= MANY and not is_long(texts):
        return verdicts(root)
    told = apart(PROGRAM, msgspec.msgpack.encode(root))
    return msgspec.msgpack.decode(told, type=list[Verdict])


def verdicts(root: JSONSchemaProps) -> list[Verdict]:
    """Those of all rules in a schema, in order."""
    # Only who has rules pays for the library.
    from podling.apiserver.cel.declared import REQUEST_BYTES
    from podling.apiserver.cel.schema_rules import SchemaRules
    from podling.apiserver.rules.custom_resources.shapes import declared_in

    found = []
    for ruled in rules_in(root, At(None, "")):
        declared = declared_in(ruled.schema, is_root=ruled.schema is root)
        if declared is None:
            found += [Verdict(has_type=False)] * len(ruled.schema.validations)
            continue
        rules, bound = SchemaRules(declared), REQUEST_BYTES // (declared.least_bytes + 1)
        for rule in ruled.schema.validations:
            may_be_new = bool(rule.optional_old_self)
            of_rule = rules.checked(rule.rule, may_be_new=may_be_new)
            fault = of_rule.fault or of_rule.of_constants
            if not of_rule.fault and of_rule.type != BOOL:
                fault = "cel expression must evaluate to a bool"
            verdict = Verdict(fault, 0 if fault else of_rule.cost, bound=bound)
            if rule.message_expression and not fault:
                told = rules.checked(rule.message_expression, may_be_new=may_be_new)
                fault = f"messageExpression {told.fault}" if told.fault else told.of_constants
                if not told.fault and told.type != STRING:
                    fault = "messageExpression must evaluate to a string"
                verdict = msgspec.structs.replace(verdict, message_fault=fault, message_cost=told.cost)
            found.append(verdict)
    return found


def main() -> None:
    """The main function of the process that compiles long rules."""
    os.nice(5)
    root = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=JSONSchemaProps)
    sys.stdout.buffer.write(msgspec.msgpack.encode(verdicts(root)))
