"""Numbers of plain data made those of a type as Go converts them, where a body is not decoded into its type
but patched as plain data first: an integer keeps its lowest bits, and a float without a fraction is one."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from podling.model.codec.fields import INTEGERS, FieldInfo, Shape, fields_of, shape_of
from podling.model.codec.json import decode_data, decode_sent
from podling.model.errors import StatusError

T = TypeVar("T")

_LEAST, _MOST = -(1 << 63), 1 << 63


def decode_unstructured(data: bytes, type_: type[T]) -> T:
    """As `decode_sent`, of plain data that was patched. Raises StatusError 400."""
    try:
        return decode_sent(data, type_)
    except StatusError:
        # Numbers that fit as they are, which is nearly all, have not been looked at.
        wanted: Any = type_
        made = _converted(decode_data(data), shape_of(wanted))
        return decode_sent(msgspec.json.encode(made), type_)


def _converted(data: Any, shape: Shape, field: FieldInfo | None = None) -> Any:
    """What is no number, and what does not fit all the same, is as it was."""
    if isinstance(data, dict) and shape.struct:
        fields = fields_of(shape.struct)
        return {
            name: _converted(value, known.shape, known) if (known := fields.get(name)) else value
            for name, value in data.items()
        }
    if isinstance(data, dict) and shape.holds is dict and shape.item:
        return {name: _converted(value, shape.item, field) for name, value in data.items()}
    if isinstance(data, list) and shape.holds is list and shape.item:
        return [_converted(each, shape.item, field) for each in data]
    if isinstance(data, list) and shape.type is bytes:
        return [_wrapped(each, INTEGERS["uint8"]) for each in data]
    if shape.type is int:
        return _wrapped(data, INTEGERS[(field and field.format) or "int32"])
    return _wrapped(data) if shape.type == int | str else data


def _wrapped(data: Any, holds: range | None = None) -> Any:
    """The lowest bits of a number, where what `holds` it is of some bits."""
    if type(data) not in (int, float):
        return data
    whole = data if isinstance(data, int) and _LEAST <= data < _MOST else _truncated(float(data))
    if whole is None or holds is None:
        return data if whole is None else whole
    return (whole - holds.start) % (holds.stop - holds.start) + holds.start


def _truncated(number: float) -> int | None:
    """As amd64 does it: what no int64 holds is the least of them."""
    if not number.is_integer():
        return None
    return int(number) if _LEAST <= number < _MOST else _LEAST
