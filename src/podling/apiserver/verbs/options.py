"""Options from query parameters. As in Kubernetes, the first value of each counts and unknown names are
ignored.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from podling.apiserver.request.request import Query, is_true
from podling.model.codec.fields import fields_of, item_type
from podling.model.errors import Cause, StatusError, bad_request, invalid

T = TypeVar("T", bound=msgspec.Struct)

LONGEST = 20
"""Characters of the longest number of 64 bits."""


def options(query: Query, type_: type[T]) -> T:
    """The options `type` from the query. Raises StatusError 400 for a malformed number."""
    fields = fields_of(type_)
    return type_(
        **{
            fields[name].attribute: _value(values, fields[name].type)
            for name, values in query.items()
            if name in fields
        }
    )


def _value(values: Sequence[str], type_: Any) -> Any:
    if type_ is bool:
        return is_true(values[0])
    if type_ is int:
        return number(values[0])
    if typing.get_origin(type_) is list:
        return [number(value) for value in values] if item_type(type_) is int else list(values)
    return values[0]


def number(text: str) -> int:
    """A whole number of 64 bits. Raises StatusError 400."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # What is longer Python might even refuse to read.
    if len(digits) > LONGEST or not -(1 << 63) <= int(text) < 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def is_dry_run(values: Sequence[str], options_kind: str) -> bool:
    """Raises StatusError 422 for any value but All."""
    for value in values:
        if value != "All":
            raise _unsupported(options_kind, "dryRun", value, "All")
    return bool(values)


FIELD_VALIDATION = ("Ignore", "Strict", "Warn")


def field_validation(query: Query, options_kind: str) -> str:
    """What to do about unknown and duplicate fields: Ignore, Warn (the default) or Strict. Raises StatusError
    422."""
    value = query.get("fieldValidation", ("Warn",))[0] or "Warn"
    if value not in FIELD_VALIDATION:
        raise _unsupported(options_kind, "fieldValidation", value, *FIELD_VALIDATION)
    return value


def _unsupported(kind: str, field: str, value: str, *supported: str) -> StatusError:
    listed = ", ".join(f'"{choice}"' for choice in supported)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return invalid(kind, "", [Cause("FieldValueNotSupported", message, field)], "meta.k8s.io")
