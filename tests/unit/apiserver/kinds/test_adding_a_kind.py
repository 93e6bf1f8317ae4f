"""The document that says how to add a kind is followed to the letter, and the kind is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from podling.apiserver.kinds import kinds
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.model import scheme
from unit.recipe import code_of, written

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

TYPE, RESOURCE, KIND = code_of("adding-a-kind.md")
HERE = "/apis/toys.example.com/v1/namespaces/default/gadgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Any:
    gadget = written(monkeypatch, "podling.model.types.gadget", TYPE).Gadget
    resource = eval(RESOURCE, {**vars(scheme), "Gadget": gadget})
    monkeypatch.setitem(scheme._BY_TYPE, gadget, resource)
    monkeypatch.setitem(scheme._BY_KIND, (resource.api_version, resource.kind), resource)
    return written(monkeypatch, "podling.apiserver.kinds.gadgets", KIND).Gadgets()


@pytest.fixture
async def gadgets(api: Conversation, kind: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setattr(f"{type(api).__module__}.KINDS", (*kinds.KINDS, kind))
    await api.restart()
    yield api


async def test_it_is_served(gadgets: Any) -> None:
    parts = [{"name": "a", "size": 1}]
    made = await gadgets.post(HERE, {"metadata": {"name": "g"}, "spec": {"parts": parts}})
    assert (made.status, made.body["spec"]["color"]) == (201, "grey")
    merged = await gadgets.patch(
        f"{HERE}/g", {"spec": {"parts": [{"name": "b", "size": 2}]}}, kind="strategic-merge-patch"
    )
    assert [part["name"] for part in merged.body["spec"]["parts"]] == ["b", "a"]
    assert merged.body["metadata"]["generation"] == 2
    table = await gadgets.get(HERE, Accept=TABLE)
    assert table.body["rows"][0]["cells"] == ["g", "grey", "0s"]
    selected = await gadgets.get(f"{HERE}?fieldSelector=spec.color%3Dred")
    assert selected.body["items"] == []
    status = await gadgets.patch(f"{HERE}/g/status", {"status": {"phase": "Spinning"}})
    assert status.body["status"] == {"phase": "Spinning"}


async def test_it_refuses_what_is_wrong(gadgets: Any) -> None:
    parts = [{"name": "a", "size": -1}]
    refused = await gadgets.post(HERE, {"metadata": {"name": "g"}, "spec": {"parts": parts}})
    assert refused.status == 422
    assert refused.message == (
        'Gadget.toys.example.com "g" is invalid: spec.parts[0].size: Invalid value: -1: '
        "must be greater than or equal to 0"
    )


def test_it_is_discovered_and_described(kind: Any) -> None:
    served = (*kinds.KINDS, kind)
    documents = Discovery(served, "1.0.0")._documents
    names = [one["name"] for one in msgspec.json.decode(documents["/apis/toys.example.com/v1"])["resources"]]
    assert names == ["gadgets", "gadgets/status"]
    document = OpenAPI(served, "1.0.0")._document("/openapi/v3/apis/toys.example.com/v1")
    described = msgspec.json.decode(document)
    assert "/apis/toys.example.com/v1/namespaces/{namespace}/gadgets/{name}/status" in described["paths"]
    assert any(name.endswith("GadgetPart") for name in described["components"]["schemas"])
