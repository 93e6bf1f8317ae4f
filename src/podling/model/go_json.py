"""What Go's decoder accepts beyond a strict reading, and how it words a refusal.

`fit` makes plain data fit a type the way Go would: null means absent (or zero, inside a list or map), base64
may hold line breaks; a value of another kind is refused with Go's sentence, which names the innermost struct
and the path.
"""

from __future__ import annotations

import base64
import binascii
import typing
from typing import Any

import msgspec

from podling.model.fields import INTEGER_BITS, FieldInfo, fields_of, is_struct, item_type
from podling.model.quantity import Quantity
from podling.model.timestamps import LAYOUTS, settled


class GoJSONError(ValueError):
    """Plain data does not fit a type; the message is Go's."""


class _Place(typing.NamedTuple):
    """Where in an object: the innermost struct's name and the JSON names that lead there, without indices."""

    struct: str
    path: tuple[str, ...]
    format: str = "int32"

    def __str__(self) -> str:
        return ".".join((self.struct, *self.path))


def fit(data: Any, type_: Any) -> Any:
    """Raises GoJSONError, and TimeError for an empty time."""
    return _fit(data, type_, _Place(getattr(type_, "__name__", ""), ()))


def _fit(data: Any, type_: Any, place: _Place) -> Any:
    if type_ is Any:
        return data
    if data is None:
        return _zero(type_)
    if is_struct(type_):
        return _fit_struct(data, type_, place)
    origin = typing.get_origin(type_)
    if origin is list:
        return [_fit(item, item_type(type_), place) for item in _expect(data, list, type_, place)]
    if origin is dict:
        pairs = _expect(data, dict, type_, place)
        return {key: _fit(value, item_type(type_), place) for key, value in pairs.items()}
    return _fit_scalar(data, type_, place)


def _fit_struct(data: Any, type_: type[msgspec.Struct], place: _Place) -> dict[str, Any]:
    fields = fields_of(type_)
    return {
        name: _fit(value, fields[name].type, _below(place, type_, fields[name]))
        for name, value in _expect(data, dict, type_, place).items()
        if value is not None and name in fields
    }


def _below(place: _Place, owner: type[Any], field: FieldInfo) -> _Place:
    return _Place(owner.__name__, (*place.path, field.wire), field.format or "int32")


def _fit_scalar(data: Any, type_: Any, place: _Place) -> Any:
    if type_ is Quantity:
        return _fit_quantity(data)
    if type_ is msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(data))
    if type_ is bytes:
        return _fit_base64(_expect(data, str, type_, place))
    if type_ == int | str:
        return _expect(data, str if isinstance(data, str) else int, type_, place)
    if data == "" and place.format in LAYOUTS:
        settled(data, place.format)
    return _expect(data, type_, type_, place)


def _fit_quantity(data: Any) -> str:
    try:
        return str(Quantity(data if type(data) in (str, int, float) else "?"))
    except ValueError as error:
        raise GoJSONError(str(error)) from error


def _fit_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise GoJSONError(f"illegal base64 data at input byte {_first_fault(text)}") from error


def _first_fault(text: str) -> int:
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n")
    return next((i for i, letter in enumerate(text) if letter not in alphabet), len(text) // 4 * 4)


def _zero(type_: Any) -> Any:
    """What null leaves in a list or map: Go's zero value."""
    if type_ == int | str or type_ is Quantity:
        return 0
    if is_struct(type_) or typing.get_origin(type_) is dict:
        return {}
    return [] if typing.get_origin(type_) is list else type_()


def _expect(data: Any, python_type: type[Any], wanted: Any, place: _Place) -> Any:
    if type(data) is python_type and (python_type is not int or _in_range(data, place.format)):
        return data
    if python_type is float and type(data) is int:
        return data
    kind = _json_kind(data, wanted_integer=python_type is int)
    raise GoJSONError(
        f"json: cannot unmarshal {kind} into Go "
        f"{f'struct field {place}' if place.path else 'value'} of type {go_type(wanted, place.format)}"
    )


def _in_range(number: int, integer: str) -> bool:
    most = 1 << (INTEGER_BITS[integer] - 1)
    return -most <= number < most


def _json_kind(data: Any, *, wanted_integer: bool) -> str:
    if isinstance(data, bool):
        return "bool"
    if isinstance(data, int | float):
        return f"number {data!r}" if wanted_integer else "number"
    return _JSON_KINDS[type(data)]


_JSON_KINDS: dict[type[Any], str] = {str: "string", list: "array", dict: "object"}
_GO_SCALARS = {str: "string", bool: "bool", float: "float64", bytes: "[]uint8"}


def go_type(type_: Any, integer: str = "int32") -> str:
    """How Go prints a type: `[]v1.Container`, `map[string]string`."""
    if type_ is int:
        return integer
    origin = typing.get_origin(type_)
    if origin is list:
        return f"[]{go_type(item_type(type_), integer)}"
    if origin is dict:
        return f"map[string]{go_type(item_type(type_), integer)}"
    if type_ == int | str:
        return "intstr.IntOrString"
    return _GO_SCALARS.get(type_) or f"v1.{type_.__name__}"


def syntax_error(error: Exception) -> str:
    """The reason without the position that msgspec adds: Go gives none."""
    return str(error).partition(" (byte ")[0] if str(error) else "nested too deeply"
