"""R-SYS-8: what a schema for custom resources may say, and what of hostile ones becomes."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.cel.formats import is_known, is_of_format
from podling.apiserver.cel.patterns import matches, pattern_fault
from podling.apiserver.rules.custom_resources.defaults import validate_defaults
from podling.apiserver.rules.custom_resources.numbers import settle_numbers, settle_values
from podling.apiserver.rules.custom_resources.schema import validate_schema
from podling.apiserver.rules.custom_resources.selectable import field_path_fault
from podling.apiserver.rules.custom_resources.structural import unsupported, validate_structural
from podling.apiserver.rules.custom_resources.values import Budget, TooCostlyError, go_number, validate_value
from podling.apiserver.rules.custom_resources.walk import At
from podling.model.codec import json
from podling.model.errors import LONGEST_TOLD
from podling.model.types.apiextensions import JSONSchemaProps

AT = At(None, "s")
TEXT = {"type": "string"}


def read(schema: dict[str, Any]) -> JSONSchemaProps:
    return json.from_data(schema, JSONSchemaProps)


def of_field(schema: dict[str, Any]) -> JSONSchemaProps:
    return read({"type": "object", "properties": {"a": schema}})


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (TEXT, ""),
        ({}, "s.properties[a].type: Required value: must not be empty for specified object fields"),
        ({"type": "array"}, "s.properties[a].items: Required value: must be specified"),
        (
            {**TEXT, "allOf": [TEXT]},
            "s.properties[a].allOf[0].type: Forbidden: must be empty to be structural",
        ),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, TEXT]}, ""),
    ],
)
def test_a_schema_says_what_each_field_is(schema: dict[str, Any], fault: str) -> None:
    found = validate_structural(of_field(schema), AT)
    assert "; ".join(f"{cause.field}: {cause.message}" for cause in found) == fault


def test_what_a_condition_speaks_of_is_in_the_schema() -> None:
    schema = read({"type": "object", "anyOf": [{"properties": {"z": {"maxLength": 1}}}]})
    (found,) = validate_structural(schema, AT)
    assert found == (
        "FieldValueRequired",
        "Required value: because it is defined in s.anyOf[0].properties[z]",
        "s.properties[z]",
    )


@pytest.mark.parametrize("word", ["$schema", "id", "$ref"])
def test_what_cannot_be_read_is_told(word: str) -> None:
    assert unsupported(of_field({**TEXT, word: "x"})).startswith("OpenAPIV3Schema")
    assert not unsupported(of_field(TEXT))


def test_lists_that_are_maps_have_their_keys() -> None:
    schema = of_field({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}})
    (found,) = validate_schema(schema, AT)
    assert found.field == "s.properties[a].x-kubernetes-list-map-keys"


@pytest.mark.parametrize(
    ("schema", "value", "is_good"),
    [
        (TEXT, "x", True),
        (TEXT, 1, False),
        ({"type": "object", "properties": {"b": TEXT}}, {"c": 1}, False),
        ({"type": "integer", "anyOf": [{"maximum": 1}, {"minimum": 5}]}, 3, False),
        ({"type": "integer", "multipleOf": 2}, 4.0, True),
        ({**TEXT, "pattern": "^a+$"}, "aa", True),
        ({**TEXT, "format": "date"}, "2020-02-30", False),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": TEXT}},
            {"apiVersion": "v1", "kind": "-"},
            False,
        ),
    ],
)
def test_defaults_are_valid(schema: dict[str, Any], value: Any, is_good: bool) -> None:
    assert (not validate_defaults(of_field({**schema, "default": value}), AT, Budget())) is is_good


def test_a_value_that_costs_too_much_is_not_looked_at() -> None:
    schema = read({"type": "array", "items": {"anyOf": [{"minLength": 9}] * 1_000}})
    with pytest.raises(TooCostlyError):
        validate_value(["a"] * 1_000, schema, AT, Budget())


def test_no_more_is_told_than_can_be_read() -> None:
    schema = read({"type": "object", "properties": {f"k{i}": {} for i in range(10_000)}})
    found = validate_structural(schema, AT)
    assert LONGEST_TOLD / 200 < len(found) < 10_000


def test_the_deepest_schema_that_can_be_read_can_be_walked() -> None:
    text = b"{}"
    for _ in range(400):
        text = b'{"type":"object","properties":{"a":' + text + b"}}"
    schema = json.decode(text, JSONSchemaProps)
    assert [cause.field.count("properties") for cause in validate_structural(schema, AT)] == [400]
    assert not validate_schema(schema, AT) and not validate_defaults(schema, AT, Budget())


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("^[a-z]+$", ""),
        ("(", "missing closing ): `(`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("\\C", "invalid escape sequence: `\\C`"),
    ],
)
def test_patterns(pattern: str, fault: str) -> None:
    assert pattern_fault(pattern) == (f"error parsing regexp: {fault}" if fault else "")


def test_a_pattern_is_found_anywhere() -> None:
    assert matches("b", "abc") and not matches("^b", "abc")


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        (".a.b", ""),
        (".a['b']", ""),
        (".z", "does not refer to a valid field"),
        ("a", "expected [ or . but got: a"),
        (".a[b]", "expected single quoted string but got b"),
        (".a['b'", "unexpected end of JSON path"),
    ],
)
def test_paths(path: str, fault: str) -> None:
    assert field_path_fault(path, of_field({"type": "object", "additionalProperties": TEXT})) == fault


def test_formats() -> None:
    assert is_of_format("ipv4", "1.2.3.4") and not is_of_format("ipv4", "1.2.3")
    assert is_known("int32", "integer") and not is_known("int32", "string")


def test_numbers_are_judged_as_sent_and_kept_as_by_go() -> None:
    schema = read({"maximum": 1.0, "default": [1.0, {"a": 2.5}], "enum": [3.0, 1 << 63]})
    settle_numbers(schema)
    assert [type(value) for value in (schema.default[0], *schema.enum)] == [float] * 3
    settle_values(schema)
    assert json.encode(schema) == b'{"default":[1,{"a":2.5}],"maximum":1,"enum":[3,9.223372036854776e18]}'
    assert [go_number(value) for value in (1e6, 1.5, 3, 1e-7, -2.0)] == ["1e+06", "1.5", "3", "1e-07", "-2"]


def test_limits_are_floating() -> None:
    schema = read(
        {"type": "number", "maximum": 9007199254740993, "minimum": -(1 << 63), "multipleOf": 10**30}
    )
    settle_numbers(schema)
    assert (schema.maximum, type(schema.maximum)) == (9007199254740992, int)
    assert json.encode(schema.minimum) == b"-9223372036854776000"
    assert schema.multiple_of == 1e30


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ({"maximum": 9007199254740992}, 9007199254740993, "should be less than or equal to 9007199254740992"),
        # Go makes an int64 of the limit, which there is none of.
        (
            {"type": "number", "maximum": 1 << 63},
            1,
            "should be less than or equal to -9223372036854775808",
        ),
        ({"maximum": 1 << 63}, 1, "Maximum boundary value must be of type integer (default format) in "),
        ({"minimum": -(1 << 63)}, 1, "Minimum boundary value must be of type integer (default format) in "),
        ({"multipleOf": 1e19}, 0, "MultipleOf value must be of type integer (default format) in "),
        ({}, 4294967296.5, "Checked value must be of type integer (default format) in "),
        ({"format": "int32"}, 1e30, 'in body must be of type int32: "float64"'),
        ({"type": "number", "multipleOf": 0.1}, 3, "factor MultipleOf declared for  must be positive: 0"),
    ],
)
def test_great_numbers(schema: dict[str, Any], value: float, fault: str) -> None:
    """The faults are those that kube-apiserver tells."""
    of = read({"type": "integer", **schema})
    settle_numbers(of)
    found = validate_value(value, of, AT, Budget())
    assert fault in found[0].message
