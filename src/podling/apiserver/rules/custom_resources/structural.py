"""Structural schemas: those that say of every field what it is outside of conditions on its value
(`apiextensions-apiserver/pkg/apiserver/schema` of Kubernetes). Only by such can objects be pruned and given
defaults.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.cel.patterns import pattern_fault
from podling.apiserver.rules.custom_resources.walk import At, Visit, schemas_in, told
from podling.apiserver.rules.field import forbidden, invalid, required
from podling.model.errors import Cause
from podling.model.types.apiextensions import JSONSchemaProps

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
"""Where a schema stands, as it is told."""
INT_OR_STRING = [JSONSchemaProps(type="integer"), JSONSchemaProps(type="string")]
"""The one condition that may name types."""
NAMES = frozenset(("name", "generateName"))
"""What a schema may say of metadata."""
FORBIDDEN_IN_CONDITIONS = (
    ("type", "type", "empty"),
    ("default", "default", "undefined"),
    ("title", "title", "empty"),
    ("description", "description", "empty"),
    ("nullable", "nullable", "false"),
    ("preserve_unknown_fields", "x-kubernetes-preserve-unknown-fields", "false"),
    ("embedded_resource", "x-kubernetes-embedded-resource", "false"),
    ("int_or_string", "x-kubernetes-int-or-string", "false"),
    ("list_map_keys", "x-kubernetes-list-map-keys", "empty"),
    ("list_type", "x-kubernetes-list-type", "undefined"),
    ("map_type", "x-kubernetes-map-type", "undefined"),
    ("validations", "x-kubernetes-validations", "empty"),
)
"""Attribute, wire name, and what it must be."""
EMPTY = JSONSchemaProps()
UNSUPPORTED = (
    ("id", "id"),
    ("schema", "schema"),
    ("ref", "$ref"),
    ("pattern_properties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additional_items", "additionalItems"),
    ("definitions", "definitions"),
)


def unsupported(root: JSONSchemaProps) -> str:
    """What keeps a schema from being read as a structural one; empty if nothing does."""
    for schema in schemas_in(root):
        for attribute, name in UNSUPPORTED:
            if getattr(schema, attribute) not in (None, "", {}):
                return f"OpenAPIV3Schema '{name}' is not supported"
        if isinstance(schema.items, list):
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if schema.preserve_unknown_fields is False:
            return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return ""


def validate_structural(schema: JSONSchemaProps, at: At) -> list[Cause]:
    """The faults in order of what they say. Nothing in the schema is `unsupported`."""
    causes = told(iter((_invariants(schema, ROOT, at), _complete_values(schema, schema, at, at))))
    return sorted(causes, key=lambda cause: f"{cause.field}: {cause.message}")


def _invariants(schema: JSONSchemaProps, level: str, at: At) -> Visit:
    if schema.type == "array" and schema.items is None:
        yield required(str(at.child("items")), "must be specified")
    if isinstance(schema.items, JSONSchemaProps):
        yield _invariants(schema.items, ITEM, at.child("items"))
    for name, inner in sorted(schema.properties.items()):
        yield _invariants(inner, FIELD, at.child("properties").key(name))
    additional = schema.additional_properties
    if additional is not None and level is ROOT:
        yield forbidden(str(at.child("additionalProperties")), "must not be used at the root")
    if isinstance(additional, JSONSchemaProps):
        yield _invariants(additional, FIELD, at.child("additionalProperties"))
    is_either = schema.any_of == INT_OR_STRING
    is_either_first = bool(schema.all_of) and schema.all_of[0].any_of == INT_OR_STRING
    yield _conditions(schema, at, any_of=not is_either, first_any_of=not is_either_first)
    yield from _validate_type(schema, level, at)
    yield from _validate_meta(schema, level, at)


def _validate_type(schema: JSONSchemaProps, level: str, at: At) -> Iterator[Cause]:
    embedded, of_type = schema.embedded_resource, at.child("type")
    if schema.int_or_string and schema.preserve_unknown_fields:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield invalid(str(at.child("x-kubernetes-preserve-unknown-fields")), True, why)
    if schema.int_or_string and embedded:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield invalid(str(at.child("x-kubernetes-embedded-resource")), True, why)
    if embedded and schema.type != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(str(of_type), schema.type, why) if schema.type else required(str(of_type), why)
    elif not schema.type and not schema.int_or_string and not schema.preserve_unknown_fields:
        yield required(str(of_type), f"must not be empty {level}")
    if embedded and schema.additional_properties is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(str(at.child("additionalProperties")), why)
    if level is ROOT and schema.type not in ("", "object"):
        yield invalid(str(of_type), schema.type, "must be object at the root")
    if embedded and not schema.preserve_unknown_fields and not schema.properties:
        why = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        yield required(str(at.child("properties")), why)


def _validate_meta(schema: JSONSchemaProps, level: str, at: At) -> Iterator[Cause]:
    if level is not ROOT and not schema.embedded_resource:
        return
    for name, type_ in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        found = schema.properties.get(name)
        if found is not None and found.type != type_:
            where = at.child("properties").key(name).child("type")
            yield invalid(str(where), found.type, f"must be {type_}")
    metadata = schema.properties.get("metadata")
    if metadata is None or level is not ROOT:
        return
    allowed = JSONSchemaProps(
        type=metadata.type,
        default=metadata.default,
        properties=metadata.properties if NAMES.issuperset(metadata.properties) else {},
        # What is no part of a structural schema.
        example=metadata.example,
    )
    if metadata != allowed:
        why = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        yield forbidden(str(at.child("properties").key("metadata")), why)


def _conditions(schema: JSONSchemaProps, at: At, *, any_of: bool = True, first_any_of: bool = True) -> Visit:
    """What may be required of a value. `first_any_of`: whether that of the first `allOf` is looked at."""
    if any_of:
        for i, one in enumerate(schema.any_of):
            yield _nested(one, at.child("anyOf").item(i))
    for i, one in enumerate(schema.all_of):
        yield _nested(one, at.child("allOf").item(i), any_of=first_any_of or i > 0)
    for i, one in enumerate(schema.one_of):
        yield _nested(one, at.child("oneOf").item(i))
    if schema.not_ is not None:
        yield _nested(schema.not_, at.child("not"))
    if schema.pattern and (fault := pattern_fault(schema.pattern)):
        why = f"must be a valid regular expression, but isn't: {fault}"
        yield invalid(str(at.child("pattern")), schema.pattern, why)


def _nested(schema: JSONSchemaProps, at: At, *, any_of: bool = True) -> Visit:
    """A condition, which may not say what a field is."""
    yield _conditions(schema, at, any_of=any_of)
    if isinstance(schema.items, JSONSchemaProps):
        yield _nested(schema.items, at.child("items"))
    for name, inner in sorted(schema.properties.items()):
        yield _nested(inner, at.child("properties").key(name))
    for attribute, name, what in FORBIDDEN_IN_CONDITIONS:
        if getattr(schema, attribute) != getattr(EMPTY, attribute):
            yield forbidden(str(at.child(name)), f"must be {what} to be structural")
    if schema.additional_properties not in (None, False):
        yield forbidden(str(at.child("additionalProperties")), "must be undefined to be structural")
    if "metadata" in schema.properties:
        where = at.child("properties").key("metadata")
        yield forbidden(str(where), "must not be specified in a nested context")


def _complete_values(condition: JSONSchemaProps, schema: JSONSchemaProps, at: At, said: At) -> Visit:
    """Everything that a condition speaks of stands in the schema, too. `said`: where the condition is."""
    if condition.not_ is not None:
        yield _complete(condition.not_, schema, at, said.child("not"))
    for name, every in (
        ("allOf", condition.all_of),
        ("anyOf", condition.any_of),
        ("oneOf", condition.one_of),
    ):
        for i, one in enumerate(every):
            yield _complete(one, schema, at, said.child(name).item(i))


def _complete(condition: JSONSchemaProps, schema: JSONSchemaProps, at: At, said: At) -> Visit:
    yield _complete_values(condition, schema, at, said)
    if isinstance(condition.items, JSONSchemaProps):
        below, there = at.child("items"), said.child("items")
        if isinstance(schema.items, JSONSchemaProps):
            yield _complete(condition.items, schema.items, below, there)
        else:
            yield required(str(below), f"because it is defined in {there}")
    for name, inner in sorted(condition.properties.items()):
        below, there = at.child("properties").key(name), said.child("properties").key(name)
        if name in schema.properties:
            yield _complete(inner, schema.properties[name], below, there)
        else:
            yield required(str(below), f"because it is defined in {there}")
