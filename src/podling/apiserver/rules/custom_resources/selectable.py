"""Paths to a field of a custom resource: those that a field selector may name, and that of the fault of a
rule. They are JSON paths of dots, names and `['keys']`, and end at what the schema has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.rules.custom_resources.walk import At
from podling.apiserver.rules.field import duplicate, invalid, required, too_many
from podling.model.errors import Cause
from podling.model.types.apiextensions import JSONSchemaProps, SelectableField

MOST_FIELDS = 8
TYPES = frozenset(("string", "boolean", "integer"))
ANYTHING = JSONSchemaProps()
"""The schema of a field that may be of any."""
NOWHERE = "does not refer to a valid field"
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class _PathError(ValueError):
    """The path does not lead to a field."""


def validate_selectable(fields: list[SelectableField], schema: JSONSchemaProps, at: At) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, field in enumerate(fields):
        path, where = field.json_path, str(at.item(i).child("jsonPath"))
        if not path:
            yield required(where)
            continue
        try:
            found = _found(path, schema, has_keys=False)
        except _PathError as error:
            yield invalid(where, path, f"is an invalid path: {error}")
            continue
        if path.startswith(".metadata") and path[9:10] in ("", "."):
            yield invalid(where, path, "must not point to fields in metadata")
        if found.type not in TYPES:
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with formats are allowed."
            )
            yield invalid(where, path, why)
        if path in seen:
            yield duplicate(where, path)
        seen.add(path)
    if len(seen) > MOST_FIELDS:
        yield too_many(str(at), len(seen), MOST_FIELDS)


def field_path_fault(path: str, schema: JSONSchemaProps) -> str:
    """Why a path leads nowhere; empty if it does not."""
    try:
        _found(path, schema)
    except _PathError as error:
        return str(error)
    return ""


def _found(path: str, schema: JSONSchemaProps, *, has_keys: bool = True) -> JSONSchemaProps:
    """The schema of the field that a path leads to. `has_keys`: whether brackets are allowed. Raises
    _PathError."""
    tokens = iter(_TOKEN.findall(path))
    for token in tokens:
        if token == ".":
            schema = _step(schema, _next(tokens))
        elif token != "[":
            raise _PathError(f"expected [ or . but got: {token}")
        elif not has_keys:
            raise _PathError("array notation is not allowed")
        else:
            key = _next(tokens)
            if len(key) < 2 or key[0] != "'" or key[-1] != "'":
                raise _PathError(f"expected single quoted string but got {key}")
            schema = _step(schema, _ESCAPE.sub(_unescaped, key[1:-1]))
            if (end := _next(tokens)) != "]":
                raise _PathError(f"expected ] but got {end}")
    return schema


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise _PathError("unexpected end of JSON path")
    return token


def _step(schema: JSONSchemaProps, name: str) -> JSONSchemaProps:
    if schema.properties:
        found: JSONSchemaProps | bool | None = schema.properties.get(name)
    else:
        found = schema.additional_properties
    if isinstance(found, bool):
        return ANYTHING
    if not isinstance(found, JSONSchemaProps):
        raise _PathError(NOWHERE)
    return found


def _unescaped(found: re.Match[str]) -> str:
    if found[1] not in _ESCAPES:
        raise _PathError(f"invalid string literal: invalid escape char {found[0]}")
    return _ESCAPES[found[1]]
