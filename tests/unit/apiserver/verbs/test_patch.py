"""R-SYS-1: patches, of each type, against what stands when they are applied."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
A = f"{CONFIGS}/a"


@pytest.fixture
async def config(api: Conversation) -> Any:
    return (await api.post(CONFIGS, {"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}})).body


@pytest.mark.parametrize(
    ("kind", "body", "data"),
    [
        ("merge-patch", {"data": {"k": None, "m": "x"}}, {"l": "w", "m": "x"}),
        ("strategic-merge-patch", {"data": {"k": "y"}}, {"k": "y", "l": "w"}),
        ("json-patch", [{"op": "replace", "path": "/data/k", "value": "z"}], {"k": "z", "l": "w"}),
    ],
)
async def test_each_type(api: Conversation, config: Any, kind: str, body: Any, data: Any) -> None:
    answer = await api.patch(A, body, kind)
    assert answer.status == 200 and answer.body["data"] == data
    assert (await api.get(A)).body == answer.body


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("merge-patch", {"metadata": {"managedFields": []}}),
        ("json-patch", [{"op": "replace", "path": "/metadata/managedFields", "value": []}]),
    ],
)
async def test_nobody_manages_after_an_empty_list(
    api: Conversation, config: Any, kind: str, body: Any
) -> None:
    assert "managedFields" in config["metadata"]
    assert "managedFields" not in (await api.patch(A, body, kind)).body["metadata"]


async def test_patches_of_many_clients_all_count(api: Conversation, config: Any) -> None:
    statuses = await asyncio.gather(*(api.patch(A, {"data": {f"n{n}": "x"}}) for n in range(20)))
    assert {answer.status for answer in statuses} == {200}
    assert {f"n{n}" for n in range(20)} <= (await api.get(A)).body["data"].keys()


async def test_a_patch_that_names_a_version_conflicts(api: Conversation, config: Any) -> None:
    answer = await api.patch(A, {"metadata": {"resourceVersion": "1"}, "data": {"k": "x"}})
    assert answer.status == 409


async def test_nothing_changed_is_nothing_written(api: Conversation, config: Any) -> None:
    assert (await api.patch(A, {"data": {"k": "v"}})).body == config


@pytest.mark.parametrize(
    ("body", "kind", "status", "message"),
    [
        ({"metadata": {"name": "b"}}, "merge-patch", 400, "does not match the name on the URL"),
        (b"{", "merge-patch", 400, "error decoding patch"),
        ([], "merge-patch", 400, ""),
        ({"data": 5}, "merge-patch", 422, "patch: Invalid value: "),
        (
            {"data": 5},
            "merge-patch",
            422,
            '": json: cannot unmarshal number into Go struct field ConfigMap.data',
        ),
        ({"kind": "Secret"}, "merge-patch", 422, "cannot be handled as a ConfigMap"),
        ([{"op": "test", "path": "/data/k", "value": "no"}], "json-patch", 422, "rejected our request"),
        ({}, "novel", 415, "415: Unsupported Media Type"),
    ],
)
async def test_refusals(
    api: Conversation, config: Any, body: Any, kind: str, status: int, message: str
) -> None:
    answer = await api.patch(A, body, kind)
    assert answer.status == status, answer.body
    assert message in answer.message


async def test_unknown_fields(api: Conversation, config: Any) -> None:
    strict = await api.patch(f"{A}?fieldValidation=Strict", {"spec": {}})
    assert strict.status == 422 and 'unknown field "spec"' in strict.message
    warned = await api.patch(A, {"spec": {}})
    assert warned.status == 200 and "unknown field" in warned.headers["Warning"]


@pytest.mark.parametrize(
    ("body", "kind", "fault"),
    [
        (b'{"data":{"k":"x","k":"y"}}', "merge-patch", 'duplicate field "data.k"'),
        (b'{"data":{"k":"x","k":"y"}}', "strategic-merge-patch", 'duplicate field "data.k"'),
        (
            [{"op": "remove", "path": "/data/k", "of": 1}],
            "json-patch",
            'json patch unknown field "[0].of"',
        ),
    ],
)
async def test_faults_of_the_patch_itself(
    api: Conversation, config: Any, body: Any, kind: str, fault: str
) -> None:
    strict = await api.patch(f"{A}?fieldValidation=Strict", body, kind)
    assert strict.status == 422 and f"strict decoding error: {fault}" in strict.message
    warned = await api.patch(A, body, kind)
    assert warned.status == 200 and fault.replace('"', '\\"') in warned.headers["Warning"]
    ignored = await api.patch(f"{A}?fieldValidation=Ignore&dryRun=All", {"data": {}}, "merge-patch")
    assert "Warning" not in ignored.headers


async def test_what_is_not_there(api: Conversation) -> None:
    assert (await api.patch(A, {})).status == 404
    assert (await api.patch(CONFIGS, {})).status == 405


async def test_a_patch_makes_no_other_object_of_it(api: Conversation) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "whose"}}
    uid = (await api.post("/api/v1/namespaces/default/configmaps", config)).body["metadata"]["uid"]
    target, other = "/api/v1/namespaces/default/configmaps/whose", {"metadata": {"uid": "other"}}
    merged = await api.patch(target, other)
    applied = await api.say(
        "PATCH",
        f"{target}?fieldManager=m",
        {**config, "metadata": {"name": "whose", "uid": "other"}},
        Content_Type="application/apply-patch+yaml",
    )
    for refused in (merged, applied):
        assert refused.status == 422, refused.body
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["metadata.uid"]
        assert "field is immutable" in refused.message
    assert (await api.patch(target, {"metadata": {"uid": uid}})).status == 200
