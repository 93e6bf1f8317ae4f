"""Defaults in a schema must be valid by it, have no fields that it does not know, and be good metadata where
they are metadata (`apiserver/schema/defaulting` of Kubernetes)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.custom_resources.numbers import kept
from podling.apiserver.rules.custom_resources.values import Budget, TooCostlyError, validate_value
from podling.apiserver.rules.custom_resources.walk import At, Visit, told
from podling.apiserver.rules.field import invalid, required
from podling.model import names
from podling.model.codec import json
from podling.model.errors import Cause, StatusError
from podling.model.types.apiextensions import JSONSchemaProps
from podling.model.types.meta import ObjectMeta

META = frozenset(("apiVersion", "kind", "metadata"))
TYPE_META = {"kind": "Validation", "apiVersion": "validation/v1"}
"""Of the object around a default of metadata."""
FAKE_NAME = "fakename"


class _Object(NamedTuple):
    """The object whose metadata a schema may be of: its schema, and the way from there."""

    schema: JSONSchemaProps
    budget: Budget
    way: tuple[Any, ...] = ()
    """Names of fields, and 0 for an item, nested: `(way, step)`."""
    is_meta: bool = False

    def step(self, name: str | int, *, is_meta: bool) -> _Object:
        return self._replace(way=(self.way, name), is_meta=is_meta)

    def around(self, value: Any) -> dict[str, Any]:
        """The smallest object with `value` at the end of the way."""
        way = self.way
        while way:
            way, step = way
            value = [value] if step == 0 else {step: value}
        return {**TYPE_META, **value}


def validate_defaults(schema: JSONSchemaProps, at: At, budget: Budget) -> list[Cause]:
    """The schema is structural, and that of a whole resource."""
    return told(_validate(schema, at, _Object(schema, budget), is_root=True))


def _validate(schema: JSONSchemaProps, at: At, within: _Object, *, is_root: bool = False) -> Visit:
    embedded = schema.embedded_resource or is_root
    if embedded:
        within = _Object(schema, within.budget)
    if schema.default is not None:
        yield from _validate_default(schema, at.child("default"), within, embedded=embedded)
    # There can be no defaults below additionalProperties of metadata, and others are not looked at.
    if isinstance(schema.items, JSONSchemaProps):
        yield _validate(schema.items, at.child("items"), within.step(0, is_meta=within.is_meta))
    for name, inner in sorted(schema.properties.items()):
        is_meta = within.is_meta or (embedded and name in META)
        yield _validate(inner, at.child("properties").key(name), within.step(name, is_meta=is_meta))


def _validate_default(schema: JSONSchemaProps, at: At, within: _Object, *, embedded: bool) -> Iterator[Cause]:
    value, faults = schema.default, list[Cause]()
    if within.is_meta:
        wrong = _validate_meta(within.around(value), within.schema, At(None, ""), embedded=True)
        if wrong:
            listed = [f"{cause.field.removeprefix('.')}: {cause.message}" for cause in wrong]
            joined = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
            faults = [invalid(str(at), kept(value), f"must result in valid metadata: {joined}")]
    else:
        if not _is_pruned(value, schema, embedded=embedded):
            yield invalid(str(at), kept(value), "must not have unknown fields")
        faults = _validate_meta(value, schema, at, embedded=embedded)
    try:
        yield from faults or validate_value(value, schema, at, within.budget)
    except TooCostlyError:
        yield invalid(
            str(at), "", "takes too long to validate: simplify anyOf, oneOf and allOf, or nest less"
        )


def _is_pruned(value: Any, schema: JSONSchemaProps, *, embedded: bool) -> bool:
    """Whether every field of `value` is known."""
    waiting: list[tuple[Any, JSONSchemaProps | None, bool]] = [(value, schema, False)]
    while waiting:
        one, known, skips = waiting.pop()
        skips = skips or (known is not None and bool(known.preserve_unknown_fields))
        if isinstance(one, list):
            item = known.items if known is not None else None
            kept = item if isinstance(item, JSONSchemaProps) else None
            if kept is not None or not skips:
                waiting += [(inner, kept, skips) for inner in one]
        if not isinstance(one, dict):
            continue
        if known is None:
            if one:
                return False
            continue
        has_meta = known.embedded_resource or (embedded and known is schema)
        additional = known.additional_properties
        for name, inner in one.items():
            if has_meta and name in META:
                continue
            if name in known.properties:
                waiting.append((inner, known.properties[name], False))
            elif additional is not None:
                below = additional if isinstance(additional, JSONSchemaProps) else None
                waiting.append((inner, below, False))
            elif not skips:
                return False
    return True


def _validate_meta(value: Any, schema: JSONSchemaProps, at: At, *, embedded: bool) -> list[Cause]:
    """The faults of the metadata of all objects in `value`; of wrong types only the first."""
    waiting: list[tuple[Any, JSONSchemaProps | None, At]] = [(value, schema, at)]
    found: list[Cause] = []
    while waiting:
        one, known, where = waiting.pop()
        if known is None:
            continue
        if isinstance(one, list):
            item = known.items if isinstance(known.items, JSONSchemaProps) else None
            waiting += [(inner, item, where.item(i)) for i, inner in enumerate(one)]
        if not isinstance(one, dict):
            continue
        if known.embedded_resource or (embedded and known is schema):
            wrong = _wrong_types(one, where)
            if wrong is not None:
                return [wrong]
            found += _validate_object(one, where)
        additional = known.additional_properties
        for name, inner in one.items():
            if name in known.properties:
                waiting.append((inner, known.properties[name], where.child(name)))
            elif isinstance(additional, JSONSchemaProps):
                waiting.append((inner, additional, where.key(name)))
    return found


def _wrong_types(obj: dict[str, Any], at: At) -> Cause | None:
    for name in ("apiVersion", "kind"):
        if name in obj and not isinstance(obj[name], str):
            return invalid(str(at.child(name)), obj[name], "must be a string")
    try:
        json.from_data(obj.get("metadata") or {}, ObjectMeta)
    except StatusError as error:
        return invalid(str(at.child("metadata")), obj["metadata"], error.message)
    return None


def _validate_object(obj: dict[str, Any], at: At) -> Iterator[Cause]:
    version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    for name in ("apiVersion", "kind"):
        if name not in obj:
            yield required(str(at.child(name)))
        elif not obj[name]:
            yield invalid(str(at.child(name)), "", "must not be empty")
    if version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        yield invalid(str(at.child("apiVersion")), version, why)
    if kind and (faults := names.dns1035_label(kind.lower())):
        why = f"may have mixed case, but should otherwise match: {','.join(faults)}"
        yield invalid(str(at.child("kind")), kind, why)
    if "metadata" in obj:
        meta = json.from_data(obj["metadata"] or {}, ObjectMeta)
        named = msgspec.structs.replace(meta, name=meta.name or FAKE_NAME)
        namespaced = bool(meta.namespace)
        for cause in metadata.validate(named, namespaced=namespaced, name_rule=names.path_segment):
            yield cause._replace(field=f"{at}.{cause.field}".removeprefix("."))
