"""Converts OpenAPI v3 to v2, for clients that know only the older version."""

from __future__ import annotations

from typing import Any

from podling.apiserver.paths.openapi.schemas import REF

DEFINITIONS = "#/definitions/"
V3_ONLY = frozenset({"allOf", "oneOf", "default"})
METHODS = frozenset({"get", "put", "post", "patch", "delete"})


def to_v2(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": {path: _item(item) for path, item in document["paths"].items()},
        "definitions": {name: _schema(schema) for name, schema in document["components"]["schemas"].items()},
    }


def _item(item: dict[str, Any]) -> dict[str, Any]:
    parameters = [_parameter(parameter) for parameter in item["parameters"]]
    operations = {method: _operation(item[method]) for method in item if method in METHODS}
    return {**operations, "parameters": parameters}


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    """In v2 the media types of a body are `consumes`, and the body itself is a parameter."""
    converted = {
        **operation,
        "parameters": [_parameter(parameter) for parameter in operation.get("parameters", ())],
        "responses": {code: _response(answer) for code, answer in operation["responses"].items()},
    }
    body = converted.pop("requestBody", None)
    if body is not None:
        content = body["content"]
        schema = _schema(next(iter(content.values()))["schema"])
        required = {"required": True} if body.get("required") else {}
        converted["parameters"].append({"name": "body", "in": "body", "schema": schema, **required})
        converted["consumes"] = list(content)
    return converted


def _response(answer: dict[str, Any]) -> dict[str, Any]:
    converted = {"description": answer["description"]}
    for content in answer.get("content", {}).values():
        converted["schema"] = _schema(content["schema"])
    return converted


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}


def _schema(schema: Any) -> Any:
    """In v2 an `allOf` of one reference is that reference, and a `oneOf` is a string."""
    if isinstance(schema, list):
        return [_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: _schema(value) for key, value in schema.items() if key not in V3_ONLY}
    for wrapped in schema.get("allOf", ()):
        converted.update(_schema(wrapped))
    if "oneOf" in schema:
        converted["type"] = "string"
    if "$ref" in converted and isinstance(converted["$ref"], str):
        converted["$ref"] = converted["$ref"].replace(REF, DEFINITIONS)
    return converted
