"""What several servers say in OpenAPI v2, as one document."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podling.apiserver.paths.openapi.gnostic import encode_document
from podling.apiserver.paths.openapi.joining import KINDS, Description, joined

INFO = {"title": "a", "version": "v1"}
OWN = {
    "swagger": "2.0",
    "info": INFO,
    "paths": {"/apis/apps/v1/x": {}},
    "definitions": {"Meta": {"type": "object"}},
}


def referring(*names: str) -> dict[str, Any]:
    schemas = [{"schema": {"$ref": f"#/definitions/{name}"}} for name in names]
    return {"get": {"responses": {str(200 + code): schema for code, schema in enumerate(schemas)}}}


def described(place: str, paths: dict[str, Any], **tables: dict[str, Any]) -> Description:
    return Description(place, msgspec.json.encode({"swagger": "2.0", "paths": paths, **tables}))


def test_only_what_is_below_its_group_and_version_is_taken() -> None:
    paths: dict[str, Any] = {
        path: {} for path in ("/apis/a/v1/x", "/apis/a/v1x/x", "/apis/a/v1", "/apis/apps/v1/y", "/api/v1/z")
    }
    assert list(joined(OWN, [described("/apis/a/v1", paths)])["paths"]) == ["/apis/a/v1/x", "/apis/apps/v1/x"]


def test_what_has_the_name_of_something_else_is_renamed_also_where_it_is_meant() -> None:
    other = {
        "Meta": {"type": "string"},
        "Thing": {"properties": {"$ref": {}, "m": {"$ref": "#/definitions/Meta"}}},
    }
    whole = joined(
        OWN, [described("/apis/a/v1", {"/apis/a/v1/x": referring("Thing", "Meta")}, definitions=other)]
    )
    assert whole["definitions"] == {
        "Meta": {"type": "object"},
        "Meta_v2": {"type": "string"},
        "Thing": {"properties": {"$ref": {}, "m": {"$ref": "#/definitions/Meta_v2"}}},
    }
    assert whole["paths"]["/apis/a/v1/x"] == referring("Thing", "Meta_v2")
    assert OWN["definitions"] == {"Meta": {"type": "object"}}, "what is own is made once"


def test_what_is_the_same_is_there_once() -> None:
    """Also if it is only after what it refers to has another name, and whatever kinds it is said to be."""
    servers = [
        described(
            f"/apis/{group}/v1",
            {f"/apis/{group}/v1/x": referring("Thing")},
            definitions={
                "Thing": {"items": {"$ref": "#/definitions/Meta"}, KINDS: [{"group": group}]},
                "Meta": {"type": form},
            },
            parameters={"pretty": {"name": "pretty", "in": "query", "type": "string"}},
        )
        for group, form in {"a": "string", "b": "string", "c": "number"}.items()
    ]
    whole = joined(OWN, servers)
    assert {name: each.get("items") for name, each in whole["definitions"].items()} == {
        "Meta": None,
        "Meta_v2": None,
        "Meta_v3": None,
        "Thing": {"$ref": "#/definitions/Meta_v2"},
        "Thing_v2": {"$ref": "#/definitions/Meta_v3"},
    }
    assert whole["paths"]["/apis/b/v1/x"] == referring("Thing")
    assert whole["paths"]["/apis/c/v1/x"] == referring("Thing_v2")
    assert list(whole["parameters"]) == ["pretty"]


@pytest.mark.parametrize(
    "document", [b"", b"[]", b'{"paths":1}', b"\xff", b'{"paths":{"/apis/a/v1/x":' + b'{"a":' * 3000]
)
def test_what_cannot_be_read_is_left_out(document: bytes, caplog: pytest.LogCaptureFixture) -> None:
    good = described("/apis/b/v1", {"/apis/b/v1/x": {}})
    assert len(joined(OWN, [Description("/apis/a/v1", document), good])["paths"]) == 2
    assert "what describes /apis/a/v1 in OpenAPI v2 cannot be used" in caplog.text


def test_clients_of_the_binary_form_get_others_too() -> None:
    """Which leave out what podling's own always have."""
    paths: dict[str, Any] = {
        "/apis/a/v1/x": {
            "get": {
                "parameters": [{"$ref": "#/parameters/pretty"}, {"name": "a", "in": "query"}],
                "responses": {"200": {"schema": {"additionalProperties": True}}},
            }
        }
    }
    assert b"/apis/a/v1/x" in encode_document(joined(OWN, [described("/apis/a/v1", paths)]))
