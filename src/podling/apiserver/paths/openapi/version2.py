"""Converts OpenAPI v3 to v2, for clients that know only the older version."""

from __future__ import annotations

from typing import Any

from podling.apiserver.paths.openapi.schemas import REF

DEFINITIONS = "#/definitions/"
V3_ONLY = frozenset({"allOf", "oneOf", "default"})
METHODS = frozenset({"get", "put", "post", "patch", "delete", "options", "head"})


def to_v2(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": {
            path: {
                **{method: _operation(item[method]) for method in item if method in METHODS},
                "parameters": [_parameter(parameter) for parameter in item.get("parameters", ())],
            }
            for path, item in document["paths"].items()
        },
        "definitions": {name: _schema(schema) for name, schema in document["components"]["schemas"].items()},
        "securityDefinitions": document["components"]["securitySchemes"],
        "security": [{name: []} for name in document["components"]["securitySchemes"]],
    }


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    """In v2 the media types of a body are `consumes`, and the body itself is a parameter."""
    answered = [answer["content"] for answer in operation["responses"].values() if "content" in answer]
    converted = {
        **operation,
        "produces": list(answered[0]),
        "schemes": ["https"],
        "parameters": [_parameter(parameter) for parameter in operation.get("parameters", ())],
        "responses": {
            code: {"description": answer["description"], **_schemas(answer.get("content", {}))}
            for code, answer in operation["responses"].items()
        },
    }
    body = converted.pop("requestBody", None)
    if body is not None:
        required = {"required": True} if body.get("required") else {}
        schema = _schemas(body["content"])
        converted["parameters"].append({"name": "body", "in": "body", **schema, **required})
        converted["consumes"] = list(body["content"])
    return converted


def _schemas(content: dict[str, Any]) -> dict[str, Any]:
    """The schema of a body, which is the same for all of its media types."""
    return {"schema": _schema(next(iter(content.values()))["schema"])} if content else {}


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}


def _schema(schema: Any) -> Any:
    """In v2 an `allOf` of one reference is that reference, and a `oneOf` is a string."""
    if isinstance(schema, list):
        return [_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {
        # The names of fields may be words of a schema.
        key: {name: _schema(field) for name, field in value.items()}
        if key == "properties"
        else _schema(value)
        for key, value in schema.items()
        if key not in V3_ONLY
    }
    for wrapped in schema.get("allOf", ()):
        converted.update(_schema(wrapped))
    if "oneOf" in schema:
        converted["type"] = "string"
    if "$ref" in converted and isinstance(converted["$ref"], str):
        converted["$ref"] = converted["$ref"].replace(REF, DEFINITIONS)
    return converted
