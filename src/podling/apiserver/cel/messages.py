"""Messages of protobuf that an expression may make (`google.protobuf.Int64Value{value: 1}`): their fields,
the types by which they are known, and the values that they are: numbers, texts, times, and values of JSON.
"""

from __future__ import annotations

import struct as binary
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from podling.apiserver.cel.objects import Measure
from podling.apiserver.cel.operators import SECOND, duration_text, timestamp_text, to_string
from podling.apiserver.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    struct,
    wrapper,
)
from podling.apiserver.cel.types import DURATION as DURATION_KIND
from podling.apiserver.cel.values import (
    LARGEST,
    SMALLEST,
    CelError,
    Duration,
    Made,
    Meter,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    keys,
    type_of,
)

PACKAGE = "google.protobuf."
EXACT = 1 << 53
"""Integers from here on are texts in JSON."""
CONVERTED = 100
"""Items as many as one counts that is made a value of JSON, which takes some 0.5 µs."""
_OBJECT, _LIST = map_of(STRING, DYN), list_of(DYN)
_WRAPPED = {
    **dict.fromkeys(("Int64", "Int32"), INT),
    **dict.fromkeys(("UInt64", "UInt32"), UINT),
    **dict.fromkeys(("Double", "Float"), DOUBLE),
    "String": STRING,
    "Bytes": BYTES,
    "Bool": BOOL,
}
_VALUE = {
    "null_value": INT,
    "number_value": DOUBLE,
    "string_value": STRING,
    "bool_value": BOOL,
    "struct_value": _OBJECT,
    "list_value": _LIST,
}
_TIME = {"seconds": INT, "nanos": INT}
NULL_VALUE = f"{PACKAGE}NullValue.NULL_VALUE"
_GO = {
    "Int64": "int64",
    "Int32": "int32",
    "UInt64": "uint64",
    "UInt32": "uint32",
    "Double": "float64",
    "Float": "float32",
    "String": "string",
    "Bytes": "[]uint8",
    "Bool": "bool",
}
_GO_OF_VALUE = {
    "null_value": "protoreflect.EnumNumber",
    "number_value": "float64",
    "string_value": "string",
    "bool_value": "bool",
    "struct_value": "*structpb.Struct",
    "list_value": "*structpb.ListValue",
}
_ZERO = {INT: 0, UINT: UInt(0), DOUBLE: 0.0, STRING: "", BYTES: b"", BOOL: False}
_TYPES = {"int64": int, "float64": float, "[]uint8": bytes, "bool": bool}
_SHOWN = {float: "Double", bool: "bool", bytes: "Bytes", list: "list", dict: "map", type(None): "'null_type'"}
_OPEN = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


class Message(msgspec.Struct, frozen=True):
    """`type`: of the value that it is."""

    type: Type
    fields: Mapping[str, Type]


MESSAGES: Mapping[str, Message] = {
    **{
        f"{PACKAGE}{name}Value": Message(wrapper(type_), {"value": type_}) for name, type_ in _WRAPPED.items()
    },
    f"{PACKAGE}Timestamp": Message(Type(TIMESTAMP), _TIME),
    f"{PACKAGE}Duration": Message(Type(DURATION_KIND), _TIME),
    f"{PACKAGE}Struct": Message(_OBJECT, {"fields": _OBJECT}),
    f"{PACKAGE}Value": Message(DYN, _VALUE),
    f"{PACKAGE}ListValue": Message(_LIST, {"values": _LIST}),
    f"{PACKAGE}Any": Message(ANY, {"type_url": STRING, "value": BYTES}),
    f"{PACKAGE}Empty": Message(struct(f"{PACKAGE}Empty"), {}),
}
ALSO: Mapping[str, Message] = {
    "timestamp": MESSAGES[f"{PACKAGE}Timestamp"],
    "duration": MESSAGES[f"{PACKAGE}Duration"],
    "null_type": Message(NULL, {}),
}
"""Names that are taken for messages, and fail when they are evaluated."""


def message_of(meter: Meter, name: str, fields: Mapping[str, Any]) -> Any:
    """The value that a message is, with fields in the order in which they were given. Raises CelError."""
    kind = name.removeprefix(PACKAGE)
    if name in ALSO:
        raise CelError(f"unknown type '{name}'")
    if name not in MESSAGES or kind == "Empty":
        return Made(name, dict(fields))
    if kind == "Struct":
        return _struct(meter, fields.get("fields", {}))
    if kind == "ListValue":
        return _list(meter, fields.get("values", []))
    if kind in ("Timestamp", "Duration"):
        return _time(kind, fields)
    if kind == "Any":
        raise CelError("unsupported conversion to ref.Val: (*dynamicpb.Message)")
    if kind == "Value":
        return _value(meter, fields)
    scalar = kind.removesuffix("Value")
    if "value" not in fields:
        return _ZERO[_WRAPPED[scalar]]
    return _field(f"{name}.value", fields["value"], _GO[scalar])


def _value(meter: Meter, fields: Mapping[str, Any]) -> Any:
    """That of the last field."""
    made: Any = None
    for field, given in fields.items():
        where, go = f"{PACKAGE}Value.{field}", _GO_OF_VALUE[field]
        plain = _unwrapped(where, given)
        if field == "struct_value" and type(plain) is dict:
            made = _object(meter, where, plain)
        elif field == "list_value" and type(plain) is list:
            made = [_json(meter, where, one) for one in plain]
        else:
            made = _field(where, plain, go)
            made = None if field == "null_value" else made
    return made


def _struct(meter: Meter, given: Any) -> dict[Any, Any]:
    where = f"{PACKAGE}Struct.fields"
    if type(given) is not dict:
        raise _unsupported(where, given)
    return _object(meter, where, given)


def _list(meter: Meter, given: Any) -> list[Any]:
    where = f"{PACKAGE}ListValue.values"
    if type(given) is not list:
        raise _unsupported(where, given)
    meter.hold(len(given))
    return [_json(meter, where, one) for one in given]


def _unsupported(where: str, given: Any) -> CelError:
    shown = type_of(given)
    return CelError(f"unsupported field type for {where}: {_OPEN.get(shown, shown)}")


def _time(kind: str, fields: Mapping[str, Any]) -> Timestamp | Duration:
    seconds, nanos = (
        _field(f"{PACKAGE}{kind}.{name}", fields.get(name, 0), go)
        for name, go in (("seconds", "int64"), ("nanos", "int32"))
    )
    whole = seconds * SECOND + nanos
    return Timestamp(whole) if kind == "Timestamp" else Duration(min(max(whole, SMALLEST), LARGEST))


def _object(meter: Meter, where: str, given: dict[Any, Any]) -> dict[Any, Any]:
    meter.hold(len(given))
    names = [_field(where, key, "string") for key in keys(given)]
    return {name: _json(meter, where, one) for name, one in zip(names, given.values(), strict=True)}


def _json(meter: Meter, where: str, value: Any) -> Any:
    """As a value of JSON, whose numbers are all floating."""
    meter.fill(CONVERTED)
    type_ = type(value)
    if type_ is Optional:
        value = _unwrapped(where, value)
        type_ = type(value)
    if value is None or type_ in (bool, str, float):
        return value
    if type_ in (int, UInt):
        return float(value) if abs(value) < EXACT else str(int(value))
    if type_ is bytes:
        return b64encode(value).decode()
    if type_ is list:
        return [_json(meter, where, one) for one in value]
    if type_ is dict:
        return _object(meter, where, value)
    if type_ is Timestamp:
        return timestamp_text(value)
    if type_ is Duration:
        return duration_text(value)
    if type_ is Made and not value.fields:
        return {}
    raise _unconverted(where, value, "*structpb.Value")


def _unwrapped(where: str, value: Any) -> Any:
    if type(value) is not Optional:
        return value
    if not value.is_there:
        raise _failed(where, "optional.none() dereference")
    return value.value


def _field(where: str, given: Any, go: str) -> Any:
    """A value as Go's type. Raises CelError."""
    value = _unwrapped(where, given)
    type_ = type(value)
    if go in ("int64", "int32", "protoreflect.EnumNumber") and type_ is int:
        if go != "int64" and not -(1 << 31) <= value < 1 << 31:
            raise _failed(where, "integer overflow")
        return value
    if go in ("uint64", "uint32") and type_ is UInt:
        if go == "uint32" and value >= 1 << 32:
            raise _failed(where, "unsigned integer overflow")
        return value
    if go == "float32" and type_ is float:
        return _nearest(value)
    if go == "string" and (text := _text(value)) is not None:
        return text
    if _TYPES.get(go) is type_:
        return value
    raise _unconverted(where, value, go)


def _text(value: Any) -> str | None:
    """Of what stands for a text."""
    if type(value) is Measure:
        return str(value.quantity)
    is_text = type(value) is str or hasattr(value, "to_text")
    return to_string(Meter(0), value) if is_text else None


def _nearest(value: float) -> float:
    """Of those that have 32 bits."""
    try:
        (found,) = binary.unpack("f", binary.pack("f", value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return float(found)


def _failed(where: str, why: str) -> CelError:
    return CelError(f"field type conversion error for {where} value type: {why}")


def _unconverted(where: str, value: Any, go: str) -> CelError:
    type_ = type(value)
    if type_ is int or type_ is UInt:
        return _failed(where, f"unsupported type conversion from '{type_of(value)}' to {go}")
    if type_ is str:
        return _failed(where, f"unsupported native conversion from string to '{go}'")
    if type_ is TypeValue:
        return _failed(where, "type conversion not supported for 'type'")
    last = "*dynamicpb.Message" if type_ is Made else type_of(value).rpartition(".")[2]
    return _failed(where, f"type conversion error from {_SHOWN.get(type_, repr(last))} to '{go}'")
