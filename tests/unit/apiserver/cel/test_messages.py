"""Messages of protobuf that expressions make are the values that they stand for. The values, and the words of
errors, are those that kube-apiserver answered with."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.cel.checker import Expression, check
from podling.apiserver.cel.evaluation import program
from podling.apiserver.cel.schema_rules import SchemaRules
from podling.apiserver.cel.values import Duration, Timestamp, UInt
from podling.apiserver.rules.custom_resources.shapes import declared_in
from podling.model.types.apiextensions import JSONSchemaProps

FAILED = "field type conversion error for google.protobuf."


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("Int64Value{value: 1}", 1),
        ("Int64Value{}", 0),
        ("UInt64Value{value: 7u}", UInt(7)),
        ("FloatValue{value: 0.1}", 0.10000000149011612),
        ("FloatValue{value: 1e300}", float("inf")),
        ("StringValue{value: 'a'}", "a"),
        ("BytesValue{value: b'a'}", b"a"),
        ("BoolValue{}", False),
        ("Timestamp{seconds: 1, nanos: 5}", Timestamp(1_000_000_005)),
        ("Duration{seconds: 9999999999999}", Duration((1 << 63) - 1)),
        ("Struct{fields: {'a': 9007199254740993}}", {"a": "9007199254740993"}),
        ("Struct{fields: {'a': b'a'}}", {"a": "YQ=="}),
        ("Struct{fields: {'a': optional.of(1)}}", {"a": 1.0}),
        ("ListValue{values: [duration('1s')]}", ["1s"]),
        ("Value{}", None),
        ("Value{string_value: 'a', number_value: 1.0}", 1.0),
        ("Value{null_value: google.protobuf.NullValue.NULL_VALUE}", None),
        ("StringValue{value: dyn(quantity('1'))}", "1"),
    ],
)
def test_a_message_is_a_value(message: str, value: Any) -> None:
    found = program(f"google.protobuf.{message}").evaluated({})
    assert (found.error, found.value) == ("", value)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Int32Value{value: 5000000000}", f"{FAILED}Int32Value.value value type: integer overflow"),
        (
            "UInt32Value{value: 5000000000u}",
            f"{FAILED}UInt32Value.value value type: unsigned integer overflow",
        ),
        (
            "Int64Value{value: dyn('a')}",
            f"{FAILED}Int64Value.value value type: unsupported native conversion from string to 'int64'",
        ),
        (
            "StringValue{value: dyn(null)}",
            f"{FAILED}StringValue.value value type: type conversion error from 'null_type' to 'string'",
        ),
        (
            "Struct{fields: {'a': quantity('1')}}",
            f"{FAILED}Struct.fields value type: type conversion error from 'Quantity' to '*structpb.Value'",
        ),
        (
            "ListValue{values: dyn('a')}",
            "unsupported field type for google.protobuf.ListValue.values: string",
        ),
        (
            "Int64Value{value: dyn(optional.none())}",
            f"{FAILED}Int64Value.value value type: optional.none() dereference",
        ),
        ("Any{}", "unsupported conversion to ref.Val: (*dynamicpb.Message)"),
    ],
)
def test_what_is_no_such_message(message: str, error: str) -> None:
    assert program(f"google.protobuf.{message}").evaluated({}).error == error


def test_a_long_message_costs() -> None:
    """Values are copied, which costs nothing in Kubernetes."""
    lists = "[" + ", ".join(["object"] * 100) + "]"
    text = f"google.protobuf.ListValue{{values: {lists}}}.size() == 100"
    found = program(text).evaluated({"object": {"a": [1] * (1 << 20)}})
    assert found.error == "operation cancelled: actual cost limit exceeded"


def checked(rule: str) -> str:
    declared = declared_in(JSONSchemaProps(type="string", max_length=5), is_root=False)
    assert declared is not None
    found = SchemaRules(declared).checked(rule)
    return found.fault or found.of_constants


def told(rule: str) -> str:
    return checked(rule).partition("<input>:")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("google.protobuf.Int64Value{value: 1} == 1", ""),
        ("[google.protobuf.Int64Value{value: 1}, 1] == [1, 1]", ""),
        ("(true ? google.protobuf.Int64Value{value: 1} : null) == 1", ""),
        ("google.protobuf.Int64Value{value: 1} < 1u", ""),
        ("google.protobuf.Any{}.nope == 1", ""),
        (
            "google.protobuf.Int64Value{value: 'a'} == 1",
            "1:33: expected type of field 'value' is 'int' but provided type is 'string'",
        ),
        ("google.protobuf.Int64Value{valu: 1} == 1", "1:32: undefined field 'valu'"),
        (
            "google.protobuf.Int64Value{value: 1}.value == 1",
            "1:37: type 'wrapper(int)' does not support field selection",
        ),
        (
            "google.protobuf.Int64Value{?value: 1} == 1",
            "1:36: expected type 'optional_type(int)' but found 'int'",
        ),
        ("google.protobuf.Empty{}.nope", "1:24: undefined field 'nope'"),
        ("net.IP{} == null", "1:7: 'net.IP' is not a message type"),
        ("list{values: [1]} == [1]", "1:5: 'list' is not a message type"),
        ("self{a: 1} == 1", "1:5: 'string' is not a type"),
    ],
)
def test_rules_know_messages(rule: str, why: str) -> None:
    assert told(rule) == why


def test_a_type_that_nothing_stands_for() -> None:
    why = "program instantiation failed: reference to undefined type: google.protobuf.Int64Value"
    assert checked("type(1) == google.protobuf.Int64Value") == why


WORDS = (
    "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
    "lists, types, durations, and timestamps, was given "
)


@pytest.mark.parametrize(
    ("shown", "where", "type_"),
    [
        ("quantity('1')", 22, "kubernetes.Quantity"),
        ("[1, quantity('1')]", 26, "kubernetes.Quantity"),
        ("{'a': optional.of(1)}", 31, "optional_type"),
        ("ip('1.2.3.4')", 16, "net.IP"),
        ("google.protobuf.Any{}", 33, "google.protobuf.Any"),
    ],
)
def test_a_format_shows_what_has_a_text(shown: str, where: int, type_: str) -> None:
    text = f"'%s'.format([{shown}]) == 'a'"
    expected = f"1:{where}: {WORDS}{type_}"
    assert told(text) == expected
    assert expected in check([Expression(text)])[0]


def test_a_format_shows_what_may_be_anything() -> None:
    assert checked("'%s %d'.format([dyn(quantity('1')), google.protobuf.Int64Value{value: 1}]) == 'a'") == ""
