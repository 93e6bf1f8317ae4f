"""OpenAPI v2 in protobuf, as messages of gnostic's `openapi.v2`: the only form of it that kubectl reads.

Each function writes one message; the numbers are those of its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podling.apiserver.protobuf.write import flag, message, text

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}

Data = Mapping[str, Any]


def encode_document(document: Data) -> bytes:
    info = text(1, document["info"]["title"]) + text(2, document["info"]["version"])
    return (
        text(1, document["swagger"])
        + message(2, info)
        + message(8, _named(2, document["paths"], _path_item))
        + message(9, _named(1, document["definitions"], _schema))
    )


def _named(number: int, items: Data, encode: Callable[[Any], bytes]) -> bytes:
    return b"".join(message(number, text(1, name) + message(2, encode(item))) for name, item in items.items())


def _extensions(number: int, data: Data) -> bytes:
    extensions = {key: value for key, value in data.items() if key.startswith("x-")}
    return _named(number, extensions, lambda value: message(2, msgspec.json.encode(value)))


def _path_item(item: Data) -> bytes:
    methods = [method for method in item if method in _METHODS]
    operations = [message(_METHODS[method], _operation(item[method])) for method in methods]
    return b"".join(operations) + _parameters(9, item["parameters"])


def _operation(operation: Data) -> bytes:
    return (
        b"".join(text(1, tag) for tag in operation.get("tags", ()))
        + b"".join(text(7, media_type) for media_type in operation.get("consumes", ()))
        + _parameters(8, operation["parameters"])
        + message(9, _named(1, operation["responses"], _response))
        + _extensions(13, operation)
    )


def _parameters(number: int, parameters: list[Data]) -> bytes:
    return b"".join(message(number, message(1, _parameter(parameter))) for parameter in parameters)


def _parameter(parameter: Data) -> bytes:
    name, required = parameter["name"], parameter.get("required", False)
    match parameter["in"]:
        case "body":
            schema = message(5, _schema(parameter["schema"]))
            return message(1, text(2, name) + text(3, "body") + flag(4, required) + schema)
        case "path":
            fields = flag(1, required) + text(2, "path") + text(4, name) + text(5, parameter["type"])
            return message(2, message(4, fields + flag(19, True)))
        case place:
            fields = text(2, place) + text(4, name) + text(6, parameter["type"])
            return message(2, message(3, fields + flag(20, True)))


def _response(response: Data) -> bytes:
    schema = message(2, message(1, _schema(response["schema"]))) if "schema" in response else b""
    return message(1, text(1, response["description"]) + schema)


def _schema(schema: Data) -> bytes:
    encoded = text(1, schema.get("$ref", "")) + text(2, schema.get("format", ""))
    encoded += text(4, schema.get("description", ""))
    encoded += b"".join(text(19, name) for name in schema.get("required", ()))
    encoded += b"".join(
        message(20, message(2, msgspec.json.encode(value))) for value in schema.get("enum", ())
    )
    if "additionalProperties" in schema:
        encoded += message(21, message(1, _schema(schema["additionalProperties"])))
    if "type" in schema:
        encoded += message(22, text(1, schema["type"]))
    if "items" in schema:
        encoded += message(23, message(1, _schema(schema["items"])))
    if "properties" in schema:
        encoded += message(25, _named(1, schema["properties"], _schema))
    return encoded + _extensions(31, schema)
