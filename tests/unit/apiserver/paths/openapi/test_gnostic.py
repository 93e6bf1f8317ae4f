"""OpenAPI v2 in protobuf, read back field by field: numbers are those of gnostic's messages."""

from __future__ import annotations

from typing import Any

from podling.apiserver.paths.openapi.gnostic import encode_document
from podling.apiserver.protobuf.wire import fields

SCHEMA = {
    "type": "object",
    "description": "A pod.",
    "properties": {
        "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": {"$ref": "#/definitions/x"}},
        "policy": {"type": "string", "enum": ["Always", "Never"]},
    },
    "required": ["names"],
}
PATCH = {
    "tags": ["core_v1"],
    "operationId": "patchCoreV1Pod",
    "produces": ["c/d"],
    "consumes": ["a/b"],
    "parameters": [
        {"name": "dryRun", "in": "query", "type": "string"},
        {"name": "body", "in": "body", "required": True, "schema": {"type": "object"}},
    ],
    "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/x"}}},
    "x-kubernetes-action": "patch",
}
NAME = {"name": "name", "in": "path", "required": True, "type": "string"}
DOCUMENT = {
    "swagger": "2.0",
    "info": {"title": "Kubernetes", "version": "v1"},
    "paths": {"/p": {"patch": PATCH, "parameters": [NAME]}},
    "definitions": {"x": SCHEMA},
}
ENCODED = encode_document(DOCUMENT)


def at(data: bytes, *path: int) -> Any:
    """The values under a path of field numbers."""
    found: list[Any] = [data]
    for number in path:
        found = [value for part in found for key, value in fields(part) if key == number]
    return found


def test_head() -> None:
    assert (at(ENCODED, 1), at(ENCODED, 2, 1), at(ENCODED, 2, 2)) == ([b"2.0"], [b"Kubernetes"], [b"v1"])


def test_paths_and_operations() -> None:
    assert at(ENCODED, 8, 2, 1) == [b"/p"]
    patch = (8, 2, 2, 8)
    assert (at(ENCODED, *patch, 1), at(ENCODED, *patch, 7)) == ([b"core_v1"], [b"a/b"])
    assert (at(ENCODED, *patch, 5), at(ENCODED, *patch, 6)) == ([b"patchCoreV1Pod"], [b"c/d"])
    assert at(ENCODED, *patch, 13, 1) == [b"x-kubernetes-action"]
    assert at(ENCODED, *patch, 13, 2, 2) == [b'"patch"']


def test_parameters() -> None:
    of_operation, of_path = (8, 2, 2, 8, 8, 1), (8, 2, 2, 9, 1)
    assert at(ENCODED, *of_operation, 2, 3, 4) == [b"dryRun"]
    assert at(ENCODED, *of_operation, 1, 2) == [b"body"]
    assert at(ENCODED, *of_operation, 1, 5, 22, 1) == [b"object"]
    assert (at(ENCODED, *of_path, 2, 4, 4), at(ENCODED, *of_path, 2, 4, 1)) == ([b"name"], [1])


def test_responses() -> None:
    response = (8, 2, 2, 8, 9, 1)
    assert at(ENCODED, *response, 1) == [b"200"]
    assert at(ENCODED, *response, 2, 1, 2, 1, 1) == [b"#/definitions/x"]


def test_schemas() -> None:
    schema = (9, 1, 2)
    assert (at(ENCODED, 9, 1, 1), at(ENCODED, *schema, 22, 1)) == ([b"x"], [b"object"])
    assert (at(ENCODED, *schema, 4), at(ENCODED, *schema, 19)) == ([b"A pod."], [b"names"])
    properties = (*schema, 25, 1)
    assert at(ENCODED, *properties, 1) == [b"names", b"labels", b"policy"]
    assert at(ENCODED, *properties, 2, 20, 2) == [b'"Always"', b'"Never"']
    assert at(ENCODED, *properties, 2, 23, 1, 22, 1) == [b"string"]
    assert at(ENCODED, *properties, 2, 21, 1, 1) == [b"#/definitions/x"]
    assert at(ENCODED, *properties, 2, 31, 2, 2) == [b'"set"']
