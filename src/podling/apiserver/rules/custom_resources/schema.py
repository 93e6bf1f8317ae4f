"""Validation of a schema for custom resources: what it may not use, and what belongs together
(`ValidateCustomResourceDefinitionOpenAPISchema` of Kubernetes).

The rules in CEL are checked for their shape; nothing here compiles them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from podling.apiserver.rules.custom_resources.selectable import field_path_fault
from podling.apiserver.rules.custom_resources.walk import At, Visit, told
from podling.apiserver.rules.field import forbidden, internal, invalid, not_supported, required
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.types.apiextensions import JSONSchemaProps, ValidationRule

TYPES = frozenset(("array", "boolean", "integer", "number", "object", "string"))
LIST_TYPES, MAP_TYPES = ("atomic", "set", "map"), ("atomic", "granular")
META = frozenset(("metadata", "kind", "apiVersion"))
REASONS = frozenset(("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"))
IS_ATOMIC_ITEM = "must be atomic as item of a list with x-kubernetes-list-type=set"
IN_KEYS = "this property is in x-kubernetes-list-map-keys, so it"
UNSUPPORTED = (
    ("additional_items", "additionalItems"),
    ("pattern_properties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
    ("ref", "$ref"),
)
_LINE_BREAK = re.compile(r"[\n\r]")


class _Within(NamedTuple):
    """What holds for a schema because of what is around it."""

    no_defaults: str = ""
    """Why there can be none; empty if there can."""
    is_meta: bool = False
    """Whether it is of metadata, kind or apiVersion of an object."""


def validate_schema(schema: JSONSchemaProps, at: At) -> list[Cause]:
    return told(_validate(schema, at, _Within(), is_root=True))


def _validate(schema: JSONSchemaProps, at: At, within: _Within, *, is_root: bool = False) -> Visit:
    yield from _unsupported(schema, at, within)
    if schema.unique_items:
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(str(at.child("uniqueItems")), why)
    additional = schema.additional_properties
    if additional is not None and additional is not True and schema.properties:
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden(str(at.child("additionalProperties")), why)
    if isinstance(additional, JSONSchemaProps):
        why = "inside additionalProperties applying to object metadata"
        inner = within._replace(no_defaults=why) if within.is_meta else within
        yield _validate(additional, at.child("additionalProperties"), inner)
    for name, one in sorted(schema.properties.items()):
        inner = within
        if (is_root or schema.embedded_resource) and name in META:
            inner = inner._replace(is_meta=True)
            inner = inner._replace(no_defaults=f"in top-level {name}") if is_root else inner
        yield _validate(one, at.child("properties").key(name), inner)
    if schema.not_ is not None:
        yield _validate(schema.not_, at.child("not"), within)
    for word, listed in (("allOf", schema.all_of), ("oneOf", schema.one_of), ("anyOf", schema.any_of)):
        for i, one in enumerate(listed):
            yield _validate(one, at.child(word).item(i), within)
    for name, one in sorted(schema.definitions.items()):
        yield _validate(one, at.child("definitions").key(name), within)
    if isinstance(schema.items, JSONSchemaProps):
        yield _validate(schema.items, at.child("items"), within)
    elif schema.items:
        for i, one in enumerate(schema.items):
            yield _validate(one, at.child("items").item(i), within)
    for name, depended in sorted(schema.dependencies.items()):
        if isinstance(depended, JSONSchemaProps):
            yield _validate(depended, at.child("dependencies").key(name), within)
    yield from _extensions(schema, at)
    yield from _keys(schema, at)
    for i, rule in enumerate(schema.validations):
        yield from _rule(rule, schema, at.child("x-kubernetes-validations").item(i))


def _unsupported(schema: JSONSchemaProps, at: At, within: _Within) -> Iterator[Cause]:
    if schema.type and schema.type not in TYPES:
        yield not_supported(str(at.child("type")), schema.type, TYPES)
    if schema.default is not None and within.no_defaults:
        yield forbidden(str(at.child("default")), f"must not be set {within.no_defaults}")
    if schema.id:
        yield forbidden(str(at.child("id")), "id is not supported")
    for attribute, name in UNSUPPORTED:
        is_told = name == "dependencies" and name in told_empty(schema)
        if is_told or getattr(schema, attribute) not in (None, {}):
            yield forbidden(str(at.child(name)), f"{name} is not supported")
    if schema.type == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(str(at.child("type")), why)
    if isinstance(schema.items, list):
        yield forbidden(str(at.child("items")), "items must be a schema object and not an array")
    if within.is_meta and schema.embedded_resource:
        why = "must not be used inside of resource meta"
        yield forbidden(str(at.child("x-kubernetes-embedded-resource")), why)


def _extensions(schema: JSONSchemaProps, at: At) -> Iterator[Cause]:
    if schema.preserve_unknown_fields is False:
        why = "must be true or undefined"
        yield invalid(str(at.child("x-kubernetes-preserve-unknown-fields")), False, why)
    map_type, list_type = schema.map_type, schema.list_type
    yield from _of_type(schema, map_type, "object", "x-kubernetes-map-type", at)
    if map_type is not None and map_type not in MAP_TYPES:
        yield not_supported(str(at.child("x-kubernetes-map-type")), map_type, MAP_TYPES)
    yield from _of_type(schema, list_type, "array", "x-kubernetes-list-type", at)
    item = schema.items if isinstance(schema.items, JSONSchemaProps) else None
    if schema.type == "array" and list_type == "set" and item is not None:
        if item.type == "array" and item.list_type not in (None, "atomic"):
            where = at.child("items").child("x-kubernetes-list-type")
            yield invalid(str(where), item.list_type, IS_ATOMIC_ITEM)
        if item.type == "object" and item.map_type != "atomic":
            where = at.child("items").child("x-kubernetes-map-type")
            # Kubernetes shows the other of the two.
            yield invalid(str(where), item.list_type, IS_ATOMIC_ITEM)
    if list_type is not None and list_type not in LIST_TYPES:
        yield not_supported(str(at.child("x-kubernetes-list-type")), list_type, LIST_TYPES)


def _of_type(schema: JSONSchemaProps, said: str | None, type_: str, name: str, at: At) -> Iterator[Cause]:
    if said is not None and schema.type != type_:
        why, where = f"must be {type_} if {name} is specified", str(at.child("type"))
        yield invalid(where, schema.type, why) if schema.type else required(where, why)


def _keys(schema: JSONSchemaProps, at: At) -> Iterator[Cause]:
    """Of a list that is a map, and of one that is a set."""
    keys, list_type, items = schema.list_map_keys, schema.list_type, at.child("items")
    of_keys, of_list_type = at.child("x-kubernetes-list-map-keys"), at.child("x-kubernetes-list-type")
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield (
            required(str(of_list_type), why)
            if list_type is None
            else invalid(str(of_list_type), list_type, why)
        )
    item = schema.items
    if list_type == "map":
        if not keys:
            yield required(str(of_keys), "must not be empty if x-kubernetes-list-type is map")
        if item is None:
            yield required(str(items), "must have a schema if x-kubernetes-list-type is map")
        elif isinstance(item, list):
            why = "must only have a single schema if x-kubernetes-list-type is map"
            yield invalid(str(items), {"Schema": None, "JSONSchemas": internal(item)}, why)
        elif item.type != "object":
            why = "must be object if parent array's x-kubernetes-list-type is map"
            yield invalid(str(items.child("type")), item.type, why)
        else:
            yield from _names_of_keys(keys, item, at)
    if not isinstance(item, JSONSchemaProps) or list_type not in ("set", "map"):
        return
    if item.nullable:
        why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden(str(items.child("nullable")), why)
    needed = frozenset(item.required)
    for key in keys if list_type == "map" else ():
        one, where = item.properties.get(key), items.child("properties").key(key)
        if one is None:
            continue
        if key not in needed and one.default is None:
            yield required(
                str(where.child("default")), f"{IN_KEYS} must have a default or be a required property"
            )
        if one.nullable:
            yield forbidden(str(where.child("nullable")), f"{IN_KEYS} cannot be nullable")


def _names_of_keys(keys: list[str], item: JSONSchemaProps, at: At) -> Iterator[Cause]:
    where, seen = at.child("x-kubernetes-list-map-keys"), set[str]()
    for key in keys:
        one = item.properties.get(key)
        if one is None:
            yield invalid(str(where), keys, "entries must all be names of item properties")
        elif one.type in ("array", "object"):
            of_type = at.child("items").child("properties").key(key).child("type")
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            # Kubernetes shows the type of the item.
            yield invalid(str(of_type), item.type, why)
        if key in seen:
            yield invalid(str(where), keys, "must not contain duplicate entries")
        seen.add(key)


def _rule(rule: ValidationRule, schema: JSONSchemaProps, at: At) -> Iterator[Cause]:
    text, message = rule.rule.strip(), rule.message.strip()
    if not text:
        yield required(str(at.child("rule")), "rule is not specified")
    elif rule.message and not message:
        yield invalid(str(at.child("message")), rule.message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message):
        yield invalid(str(at.child("message")), rule.message, "must not contain line breaks")
    elif _LINE_BREAK.search(text) and not message:
        yield required(str(at.child("message")), "message must be specified if rule contains line breaks")
    if rule.message_expression and not rule.message_expression.strip():
        yield required(str(at.child("messageExpression")), "messageExpression must be non-empty if specified")
    if rule.reason is not None and rule.reason not in REASONS:
        yield not_supported(str(at.child("reason")), rule.reason, REASONS)
    path, where = rule.field_path, at.child("fieldPath")
    if path and not path.strip():
        yield invalid(str(where), path, "must be non-empty if specified")
    if _LINE_BREAK.search(path):
        yield invalid(str(where), path, "must not contain line breaks")
    if path and field_path_fault(path, schema):
        yield invalid(str(where), path, "must be a valid path")
