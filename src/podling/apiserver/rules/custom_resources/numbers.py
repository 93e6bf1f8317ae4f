"""Numbers in a definition, in the spelling that Kubernetes keeps them in: whole ones have no fraction, and
those beyond 64 bits are floating."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from podling.apiserver.rules.custom_resources.walk import schemas_in
from podling.model.types.apiextensions import JSONSchemaProps

LARGEST = 1 << 63
EXACT = 1 << 53
WRITTEN_OUT = 10**21
"""From here on a number is written with an exponent."""
LIMITS = ("maximum", "minimum", "multiple_of")
VALUES = ("default", "example")


def settle_numbers(root: JSONSchemaProps) -> None:
    """Rewrite the limits of a schema and the values in it, all that are inside of it, too."""
    for schema in schemas_in(root):
        for name in LIMITS:
            value = getattr(schema, name)
            if value is not None:
                setattr(schema, name, written(float(value)))
        for name in VALUES:
            if (value := getattr(schema, name)) is not None:
                setattr(schema, name, _settle(value, schema if name == "default" else None))
        schema.enum = [_settle(value, None) for value in schema.enum]


def _settle(value: Any, schema: JSONSchemaProps | None) -> Any:
    """A JSON value of that schema, changed in place where it has parts."""
    waiting: list[tuple[Any, JSONSchemaProps | None]] = [(value, schema)]
    while waiting:
        one, known = waiting.pop()
        for key, inner in (
            one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        ):
            within = _within(known, key)
            if isinstance(inner, dict | list):
                waiting.append((inner, within))
            else:
                one[key] = _judged(inner, within)
    return value if isinstance(value, dict | list) else _judged(value, schema)


def _within(schema: JSONSchemaProps | None, key: str | int) -> JSONSchemaProps | None:
    """The schema of a part."""
    if schema is None:
        return None
    found = schema.items if isinstance(key, int) else schema.properties.get(key, schema.additional_properties)
    return found if isinstance(found, JSONSchemaProps) else None


def _judged(value: Any, schema: JSONSchemaProps | None) -> Any:
    """What was written as a floating number and is no exact integer stays one where an integer belongs: it
    is refused there."""
    if schema and schema.type == "integer" and isinstance(value, float) and abs(value) >= EXACT:
        return value
    return _settled(value)


def written(value: Any) -> Any:
    """A floating number as Go writes it: with as many digits as tell it from others, and zeros."""
    if isinstance(value, float) and value.is_integer() and abs(value) < WRITTEN_OUT:
        return int(Decimal(repr(value)))
    return value


def _settled(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return int(value)
    if type(value) is int and not -LARGEST <= value < LARGEST:
        return float(value)
    return value
