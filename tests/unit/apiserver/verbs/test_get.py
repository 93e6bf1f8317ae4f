"""R-SYS-1: reading one object."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"


async def test_what_is_created_is_read_back(api: Conversation) -> None:
    created = await api.post(CONFIGS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert created.status == 201
    read = await api.get(f"{CONFIGS}/a")
    assert (read.status, read.body) == (200, created.body)
    meta = read.body["metadata"]
    assert meta["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert meta["namespace"] == "default" and len(meta["uid"]) == 36 and int(meta["resourceVersion"]) > 0
    assert list(read.body) == ["kind", "apiVersion", "metadata", "data"]


async def test_what_is_not_there(api: Conversation) -> None:
    answer = await api.get(f"{CONFIGS}/a")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" not found',
        "reason": "NotFound",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 404,
    }
    assert answer.status == 404


async def test_a_state_that_is_yet_to_come(api: Conversation) -> None:
    made = await api.post(CONFIGS, {"metadata": {"name": "a"}})
    known = int(made.body["metadata"]["resourceVersion"])
    assert (await api.get(f"{CONFIGS}/a?resourceVersion={known}")).status == 200
    ahead = await api.get(f"{CONFIGS}/a?resourceVersion={known + 1}")
    assert ahead.message == f"Timeout: Too large resource version: {known + 1}, current: {known}"
    assert (ahead.status, ahead.body["reason"], ahead.headers["Retry-After"]) == (504, "Timeout", "1")
    assert ahead.body["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    assert (await api.get(f"{CONFIGS}/a?resourceVersion=x")).status == 400


async def test_a_state_that_comes_while_it_is_waited_for(api: Conversation) -> None:
    ahead = api.storage.revision + 2
    async with asyncio.timeout(5), asyncio.TaskGroup() as asked:
        early = asked.create_task(api.get(f"{CONFIGS}/a?resourceVersion={ahead - 1}"))
        both = asked.create_task(api.get(f"{CONFIGS}?resourceVersion={ahead}"))
        left = asked.create_task(api.get(f"{CONFIGS}?resourceVersion={ahead}"))
        await asyncio.sleep(0)
        left.cancel()
        await api.post(CONFIGS, {"metadata": {"name": "a"}})
        await api.post(CONFIGS, {"metadata": {"name": "b"}})
    assert early.result().status == 200
    assert [one["metadata"]["name"] for one in both.result().body["items"]] == ["a", "b"]
    assert left.cancelled()


async def test_what_is_deprecated_says_so_to_all(api: Conversation) -> None:
    endpoints = "/api/v1/namespaces/default/endpoints"
    told = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    assert (await api.get(endpoints)).headers["Warning"] == told
    assert (await api.post(endpoints, {"metadata": {"name": "e"}})).headers["Warning"] == told
    assert (await api.get(f"{endpoints}/e")).headers["Warning"] == told
    assert "Warning" not in (await api.get(CONFIGS)).headers
