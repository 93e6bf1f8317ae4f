"""Rules in schemas: what they are refused for, and what they are estimated to cost. The words and the numbers
are those that kube-apiserver answered with.
"""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.cel import checker
from podling.apiserver.rules.custom_resources import expressions
from podling.apiserver.rules.custom_resources.expressions import Verdict, validate_rules, verdicts
from podling.apiserver.rules.custom_resources.walk import At
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.apiextensions import JSONSchemaProps

TEXT: dict[str, Any] = {"type": "string"}
SHORT: dict[str, Any] = {"type": "string", "maxLength": 50}
WHOLE: dict[str, Any] = {"type": "integer"}
FIELDS: dict[str, Any] = {
    "x": WHOLE,
    "s": SHORT,
    "u": TEXT,
    "l": {"type": "array", "items": SHORT, "maxItems": 7},
    "lo": {"type": "array", "items": {"type": "object", "properties": {"s": SHORT}}, "maxItems": 7},
    "ll": {"type": "array", "items": {"type": "array", "items": WHOLE, "maxItems": 5}, "maxItems": 3},
    "m": {"type": "object", "additionalProperties": SHORT, "maxProperties": 9},
    "t": {"type": "string", "format": "date-time"},
    "i": {"x-kubernetes-int-or-string": True},
    "o": {"type": "object"},
    "a-b": WHOLE,
    "for": WHOLE,
    "k": {"x-kubernetes-preserve-unknown-fields": True},
    "ul": {"type": "array", "items": TEXT},
}
NO_EQUALS = "found no matching overload for '_==_' applied to"
NO_RANGE = "cannot be range of a comprehension (must be list, map, or dynamic)"
OBJECT = {"type": "object", "properties": FIELDS}


def verdict(rule: str, schema: dict[str, Any] = OBJECT, **fields: Any) -> Verdict:
    ruled = {**schema, "x-kubernetes-validations": [{"rule": rule, **fields}]}
    root = {"type": "object", "properties": {"a": ruled}}
    (found,) = verdicts(json.from_data(root, JSONSchemaProps))
    return found


def causes(**schema: Any) -> list[tuple[str, str]]:
    root = json.from_data({"type": "object", **schema}, JSONSchemaProps)
    return [(one.field, one.message) for one in validate_rules(root, At(None, "s"))]


def ruled(schema: dict[str, Any], *rules: str, **fields: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **fields} for rule in rules]}


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        ("true", 0),
        ("self.x == 1", 2),
        ("self.s == self.s", 24),
        ("self.u == self.u", 314_577),
        ("self.s.matches('abcdefgh')", 44),
        ("self.u.contains('abc')", 314_575),
        ("self.l.all(x, x == 'a')", 38),
        ("self.l.map(x, x) == self.l", 107),
        ("self.m.exists(k, v, v == self.s)", 246),
        ("self.m.exists_one(k, v, v == self.s)", 229),
        ("self.ul.all(x, true)", 3_145_728),
        ("self.ll.all(x, x.all(y, true))", 63),
        ("self.l.sort() == self.l", 119),
        ("self.s.replace('ab', 'bbb') == self.u", 74),
        ("self.s.split(',', 3).all(x, true)", 52),
        ("self.l.join(',') == self.u", 286),
        ("self.lo.map(x, x.s)[0] == self.u", 134),
        ("self.lo.sortBy(x, x.s) == self.lo", 240),
        ("format.uri().validate(self.s).hasValue()", 644),
        ("cidr(self.s).containsIP('1.2.3.4')", 27),
        ("sets.equivalent(self.l, self.l)", 103),
        ("self.x == 1 ? true : self.l.all(x, true)", 26),
        ("has(self.m.a)", 2),
        ("self.t - self.t == duration('1s')", 7),
        ("lists.range(self.x).all(x, true)", (1 << 64) - 1),
    ],
)
def test_what_a_rule_may_cost(rule: str, cost: int) -> None:
    assert verdict(rule).fault == ""
    assert verdict(rule).cost == cost


@pytest.mark.parametrize(
    ("rule", "column", "words"),
    [
        ("self == 1", 6, "found no matching overload for '_==_' applied to '(selfType0, int)'"),
        ("self.foo", 5, "undefined field 'foo'"),
        ("self.x.foo", 7, "type 'int' does not support field selection"),
        (
            "self.lo[0] == 1",
            12,
            "found no matching overload for '_==_' applied to '(selfType0.lo.@idx, int)'",
        ),
        ("self.lo.all(q, q.w == 1)", 17, "undefined field 'w'"),
        ("self.ll[0][0] == ''", 15, "found no matching overload for '_==_' applied to '(int, string)'"),
        (
            "self.a__dash__b == ''",
            17,
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        ("self.k == 1", 5, "undefined field 'k'"),
        ("self.t == 1", 8, "found no matching overload for '_==_' applied to '(timestamp, int)'"),
        ("self.x == null", 8, "found no matching overload for '_==_' applied to '(int, null)'"),
        ("self.l.foo(1)", 11, "undeclared reference to 'foo' (in container '')"),
        (
            "self.u.all(x, x)",
            5,
            "expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("true && self.x", 13, "expected type 'bool' but found 'int'"),
        ("timestamp(null) == self.t", 11, "invalid timestamp argument"),
        ("Foo{a: 1} == 1", 4, "undeclared reference to 'Foo' (in container '')"),
    ],
)
def test_what_does_not_fit(rule: str, column: int, words: str) -> None:
    shown = f"compilation failed: ERROR: <input>:1:{column}: {words}\n | {rule}\n | {'.' * (column - 1)}^"
    assert verdict(rule).fault == shown


@pytest.mark.parametrize(
    "rule",
    [
        "self.i == 1 || self.i == 'a'",
        "self.__for__ > 1",
        "self.o == null",
        "self.?x.orValue(1) == 2",
        "type(self.x) == int",
        "self.t > timestamp('2020-01-01T00:00:00Z')",
        "{'a': self.x}.transformMap(k, v, v + 1) == {'a': 2}",
    ],
)
def test_what_fits(rule: str) -> None:
    assert verdict(rule).fault == ""


def test_what_a_rule_and_a_message_must_be() -> None:
    assert verdict("self.x").fault == "cel expression must evaluate to a bool"
    assert (
        verdict("true", messageExpression="1").message_fault == "messageExpression must evaluate to a string"
    )
    assert verdict("true", messageExpression="nope").message_fault.startswith("messageExpression compilation")
    assert verdict("string(null) == ''").fault == (
        "program instantiation failed: no such overload: string(null_type)"
    )


def test_what_was_there_may_be_optional() -> None:
    assert verdict("oldSelf.hasValue() && oldSelf.value().x == self.x", optionalOldSelf=True).fault == ""
    assert "'(optional_type(int), int)'" in verdict("oldSelf.x == 1", optionalOldSelf=True).fault
    assert "'hasValue'" in verdict("oldSelf.hasValue()").fault


def test_the_root_and_embedded_resources_have_metadata() -> None:
    assert causes(**ruled({}, "self.metadata.name == self.kind")) == []
    ((_, message),) = causes(**ruled({}, "has(self.metadata.labels)"))
    assert "undefined field 'labels'" in message
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"x": WHOLE}}
    assert causes(properties={"a": ruled(embedded, "self.apiVersion == 'v1'")}) == []


def test_of_what_has_no_type_nothing_can_be_said() -> None:
    listed = {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}
    assert causes(properties={"a": ruled(listed, "true", "false")}) == [
        ("s.properties[a].x-kubernetes-validations", f"Internal error: {expressions.NO_TYPE}")
    ]


def test_a_rule_costs_for_each_value_that_it_is_about() -> None:
    item = ruled({"type": "object", "properties": {"u": TEXT}}, "self.u == self.u")
    found = causes(properties={"a": {"type": "array", "items": item, "maxItems": 40}})
    where = "s.properties[a].items.x-kubernetes-validations[0].rule"
    exceeds = f"exceeds budget by factor of 1.258308x {expressions.ADVICE}"
    assert found == [(where, f"Forbidden: estimated rule cost {exceeds}")]


def test_what_all_rules_may_cost() -> None:
    item = ruled({"type": "object", "properties": {"u": TEXT}}, *["self.u == self.u"] * 12)
    found = causes(properties={"a": {"type": "array", "items": item, "maxItems": 30}})
    path = "s.properties[a].items.x-kubernetes-validations[{}].rule"
    why = (
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    )
    assert found[:-1] == [(path.format(i), why) for i in range(expressions.MOST_NAMED)]
    assert found[-1][0] == "s"
    assert "entire OpenAPIv3 schema exceeds budget by factor of 1.132477x" in found[-1][1]


def test_long_rules_are_compiled_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"properties": {"a": {"type": "string", "maxLength": 5, "enum": ["a", "b"], "default": "a"}}}
    long = " && ".join(["self.a == 'a'"] * 100)
    ((_, message),) = causes(**ruled(fields, f"{long} && self.b == 1"))
    assert "undefined field 'b'" in message
    assert causes(**ruled(fields, long)) == []
    monkeypatch.setattr(checker, "PATIENCE", 0)
    with pytest.raises(StatusError, match="too many or too long to be compiled"):
        causes(**ruled(fields, long))


@pytest.mark.parametrize(
    "text",
    [
        *("(" * 5_000, "[" * 5_000, "!" * 5_000, "-" * 5_000 + "1", "@" * 5_000, "'" * 5_000),
        *("self" + ".a" * 5_000, "1" + "+1" * 5_000, "[1].map(x," * 500, "\x00", "Object{" * 300),
        *("[" * 30 + "]" * 30, "[[1]]" + ".map(x, x)" * 300),
    ],
)
def test_hostile_ones_are_refused(text: str) -> None:
    assert verdict(text).fault
    assert len(verdict(text).fault) < 300_000
