"""What a schema for custom resources says of a value to expressions."""

from __future__ import annotations

from podling.apiserver.cel.declared import Declared, Shape, declared
from podling.model.types.apiextensions import JSONSchemaProps

_TEXT = JSONSchemaProps(type="string")
_METADATA = JSONSchemaProps(type="object", properties={"name": _TEXT, "generateName": _TEXT})


def declared_in(schema: JSONSchemaProps, *, is_root: bool) -> Declared | None:
    """None if expressions can know nothing of it. `is_root`: it is the schema of a whole resource."""
    shape = _shape(schema, is_resource=is_root or schema.embedded_resource)
    return declared(shape, shape_of)


def shape_of(schema: JSONSchemaProps) -> Shape:
    return _shape(schema, is_resource=schema.embedded_resource)


def _shape(schema: JSONSchemaProps, *, is_resource: bool) -> Shape:
    has_default = schema.default is not None
    if schema.int_or_string:
        return Shape("int-or-string", has_default=has_default)
    if schema.type == "array":
        items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
        return Shape("array", most=schema.max_items, items=items, has_default=has_default)
    additional = schema.additional_properties
    if schema.type == "object" and isinstance(additional, JSONSchemaProps):
        return Shape("object", most=schema.max_properties, items=additional, has_default=has_default)
    fields = schema.properties
    if is_resource and not _is_whole(fields):
        fields = {**fields, "kind": _TEXT, "apiVersion": _TEXT, "metadata": _METADATA}
    return Shape(
        schema.type,
        schema.format,
        schema.max_length,
        fields=fields,
        required=frozenset(schema.required),
        enum=tuple(schema.enum),
        has_default=has_default,
    )


def _is_whole(fields: dict[str, JSONSchemaProps]) -> bool:
    """Whether a resource says of itself what is else known of all."""
    metadata = fields.get("metadata")
    return (
        all(name in fields and fields[name].type == "string" for name in ("kind", "apiVersion"))
        and metadata is not None
        and metadata.type == "object"
        and all(
            name in metadata.properties and metadata.properties[name].type == "string"
            for name in _METADATA.properties
        )
    )
