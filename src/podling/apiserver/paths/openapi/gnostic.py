"""OpenAPI v2 in protobuf, as gnostic's `openapi.v2` messages: the only v2 form that kubectl reads.

Each function writes one message; the numbers are those of its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podling.apiserver.protobuf.wire import encode_bytes, encode_flag, encode_text

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}

Data = Mapping[str, Any]


def encode_document(document: Data) -> bytes:
    info = encode_text(1, document["info"]["title"]) + encode_text(2, document["info"]["version"])
    return (
        encode_text(1, document["swagger"])
        + encode_bytes(2, info)
        + encode_bytes(8, _named(2, document["paths"], _item))
        + encode_bytes(9, _named(1, document["definitions"], _schema))
    )


def _named(number: int, items: Data, encode: Callable[[Any], bytes]) -> bytes:
    return b"".join(
        encode_bytes(number, encode_text(1, name) + encode_bytes(2, encode(item)))
        for name, item in items.items()
    )


def _extensions(number: int, data: Data) -> bytes:
    extensions = {key: value for key, value in data.items() if key.startswith("x-")}
    return _named(number, extensions, lambda value: encode_bytes(2, msgspec.json.encode(value)))


def _item(item: Data) -> bytes:
    methods = [method for method in item if method in _METHODS]
    operations = [encode_bytes(_METHODS[method], _operation(item[method])) for method in methods]
    return b"".join(operations) + _parameters(9, item.get("parameters", []))


def _operation(operation: Data) -> bytes:
    return (
        b"".join(encode_text(1, tag) for tag in operation.get("tags", ()))
        + encode_text(3, operation.get("description", ""))
        + encode_text(5, operation.get("operationId", ""))
        + b"".join(encode_text(6, media_type) for media_type in operation.get("produces", ()))
        + b"".join(encode_text(7, media_type) for media_type in operation.get("consumes", ()))
        + _parameters(8, operation.get("parameters", []))
        + encode_bytes(9, _named(1, operation.get("responses", {}), _response))
        + _extensions(13, operation)
    )


def _parameters(number: int, parameters: list[Data]) -> bytes:
    encoded = b""
    for parameter in parameters:
        if "$ref" in parameter:
            encoded += encode_bytes(number, encode_bytes(2, encode_text(1, parameter["$ref"])))
            continue
        name, required = encode_text(4, parameter["name"]), parameter.get("required", False)
        said = encode_text(3, parameter.get("description", ""))
        match parameter["in"]:
            case "body":
                fields = encode_text(2, parameter["name"]) + encode_text(3, "body")
                fields += encode_flag(4, required) + encode_bytes(5, _schema(parameter["schema"]))
                message = encode_bytes(1, fields)
            case "path":
                fields = encode_flag(1, required) + encode_text(2, "path") + said + name
                fields += encode_text(5, parameter.get("type", "")) + encode_flag(19, True)
                message = encode_bytes(2, encode_bytes(4, fields))
            case place:
                fields = encode_text(2, place) + said + name + encode_text(6, parameter.get("type", ""))
                message = encode_bytes(2, encode_bytes(3, fields + encode_flag(20, True)))
        encoded += encode_bytes(number, encode_bytes(1, message))
    return encoded


def _response(response: Data) -> bytes:
    schema = encode_bytes(2, encode_bytes(1, _schema(response["schema"]))) if "schema" in response else b""
    return encode_bytes(1, encode_text(1, response.get("description", "")) + schema)


def _schema(schema: Data) -> bytes:
    encoded = encode_text(1, schema.get("$ref", "")) + encode_text(2, schema.get("format", ""))
    encoded += encode_text(4, schema.get("description", ""))
    encoded += b"".join(encode_text(19, name) for name in schema.get("required", ()))
    encoded += b"".join(
        encode_bytes(20, encode_bytes(2, msgspec.json.encode(value))) for value in schema.get("enum", ())
    )
    if isinstance(more := schema.get("additionalProperties"), dict):
        encoded += encode_bytes(21, encode_bytes(1, _schema(more)))
    if "type" in schema:
        encoded += encode_bytes(22, encode_text(1, schema["type"]))
    if "items" in schema:
        encoded += encode_bytes(23, encode_bytes(1, _schema(schema["items"])))
    if "properties" in schema:
        encoded += encode_bytes(25, _named(1, schema["properties"], _schema))
    return encoded + _extensions(31, schema)
