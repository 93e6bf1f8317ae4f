"""Numbers in a definition, in the spelling that Kubernetes keeps them in: whole ones have no fraction, and
those beyond 64 bits are floating."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from podling.apiserver.rules.custom_resources.walk import schemas_in
from podling.model.types.apiextensions import JSONSchemaProps

LARGEST = 1 << 63
WRITTEN_OUT = 10**21
"""From here on a number is written with an exponent."""
LIMITS = ("maximum", "minimum", "multiple_of")
VALUES = ("default", "example")


def settle_numbers(root: JSONSchemaProps) -> None:
    """Rewrite the limits of a schema and what no number of 64 bits holds in its values, all that are inside
    of it, too. Other values are judged as they were sent."""
    for schema in schemas_in(root):
        for name in LIMITS:
            value = getattr(schema, name)
            if value is not None:
                setattr(schema, name, written(float(value)))
        _change_values(schema, _held)


def settle_values(root: JSONSchemaProps) -> None:
    """Rewrite the values in a schema that were judged."""
    for schema in schemas_in(root):
        _change_values(schema, _kept)


def kept(value: Any) -> Any:
    """A value as it is kept; a copy if it has parts."""
    if isinstance(value, list):
        return [kept(one) for one in value]
    if isinstance(value, dict):
        return {name: kept(one) for name, one in value.items()}
    return _kept(value)


def shown(value: Any) -> Any:
    """A value as messages show it."""
    return _changed(kept(value), written)


def written(value: Any) -> Any:
    """A floating number as Go writes it: with as many digits as tell it from others, and zeros."""
    if isinstance(value, float) and value.is_integer() and abs(value) < WRITTEN_OUT:
        return int(Decimal(repr(value)))
    return value


def _change_values(schema: JSONSchemaProps, change: Callable[[Any], Any]) -> None:
    for name in VALUES:
        if (value := getattr(schema, name)) is not None:
            setattr(schema, name, _changed(value, change))
    schema.enum = [_changed(value, change) for value in schema.enum]


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value, changed in place where it has parts."""
    if not isinstance(value, dict | list):
        return change(value)
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        for key, inner in one.items() if isinstance(one, dict) else enumerate(one):
            if isinstance(inner, dict | list):
                waiting.append(inner)
            else:
                one[key] = change(inner)
    return value


def _held(value: Any) -> Any:
    return float(value) if type(value) is int and not -LARGEST <= value < LARGEST else value


def _kept(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return int(value)
    return value
