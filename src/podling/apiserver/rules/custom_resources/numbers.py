"""Numbers in a definition, in the spelling that Kubernetes keeps them in: whole ones have no fraction, and
those beyond 64 bits are floating."""

from __future__ import annotations

from typing import Any

from podling.apiserver.rules.custom_resources.walk import schemas_in
from podling.model.types.apiextensions import JSONSchemaProps

LARGEST = 1 << 63
LIMITS = ("maximum", "minimum", "multiple_of")
VALUES = ("default", "example")


def settle_numbers(root: JSONSchemaProps) -> None:
    """Rewrite the limits of a schema and the values in it, all that are inside of it, too."""
    for schema in schemas_in(root):
        for name in LIMITS:
            value = getattr(schema, name)
            if value is not None:
                setattr(schema, name, _settled(value))
        for name in VALUES:
            if (value := getattr(schema, name)) is not None:
                setattr(schema, name, _settle(value))
        schema.enum = [_settle(value) for value in schema.enum]


def _settle(value: Any) -> Any:
    """A JSON value, changed in place where it has parts."""
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        for key, inner in (
            one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        ):
            if isinstance(inner, dict | list):
                waiting.append(inner)
            else:
                one[key] = _settled(inner)
    return value if isinstance(value, dict | list) else _settled(value)


def _settled(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return int(value)
    if type(value) is int and not -LARGEST <= value < LARGEST:
        return float(value)
    return value
