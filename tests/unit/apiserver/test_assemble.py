"""The server's own time: what it does when nobody asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.assemble import BOOKMARK_SECONDS, ApiServer
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import Response
from podling.model.errors import StatusError
from podling.model.types.node import Node
from podling.storage.memory import MemoryStorage

CONFIGS = "/api/v1/namespaces/default/configmaps"
ROOT = User("root", ("system:masters",))


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def nowhere(*_: Any) -> Response:
    raise AssertionError("there are no nodes")


async def frames(server: ApiServer, query: str) -> AsyncGenerator[Any, None]:
    answer = await server.handle(Request("GET", CONFIGS, query, user=ROOT))
    assert isinstance(answer.body, AsyncGenerator)
    async for batch in answer.body:
        for line in batch.splitlines():
            yield json.loads(line)


async def make(server: ApiServer, path: str, body: Any) -> int:
    headers = {"Content-Type": "application/json"}
    answer = await server.handle(Request("POST", path, "", headers, json.dumps(body).encode(), ROOT))
    assert answer.status == 201 and isinstance(answer.body, bytes)
    return int(json.loads(answer.body)["metadata"]["resourceVersion"])


async def watched_for_minutes() -> None:
    loop = asyncio.get_running_loop()
    server = ApiServer.build(MemoryStorage(), KINDS, clock=Clock(), connector=nowhere)
    await server.start()
    await make(server, "/api/v1/namespaces", {"metadata": {"name": "default"}})
    made = await make(server, CONFIGS, {"metadata": {"name": "a"}})
    begun = loop.time()
    silent = frames(server, f"watch=1&resourceVersion={made}&timeoutSeconds=150")
    asked = frames(server, f"watch=1&resourceVersion={made}&timeoutSeconds=150&allowWatchBookmarks=true")
    first = await anext(asked)
    assert loop.time() - begun <= BOOKMARK_SECONDS
    assert (first["type"], first["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
    # Another resource moves on, and nothing happens to this one.
    newest = await make(server, "/api/v1/namespaces", {"metadata": {"name": "other"}})
    second = await anext(asked)
    assert loop.time() - begun == 2 * BOOKMARK_SECONDS
    assert second["object"]["metadata"]["resourceVersion"] == str(newest)
    assert [event async for event in asked] == []
    assert loop.time() - begun == 150
    assert [event async for event in silent] == []
    server.close()


def test_who_asks_for_bookmarks_gets_one_a_minute(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    """R-SYS-1: a watch that is quiet for long still resumes from a revision that is known."""
    in_no_time(watched_for_minutes())


async def changed_often() -> None:
    storage = MemoryStorage()
    server = ApiServer.build(storage, KINDS, clock=Clock(), connector=nowhere)
    await server.start()
    await make(server, "/api/v1/namespaces", {"metadata": {"name": "default"}})
    made = [await make(server, CONFIGS, {"metadata": {"name": f"c{n}"}}) for n in range(300)]
    await storage.compact(made[-1])

    async def resumes(revision: int) -> bool:
        watch = frames(server, f"watch=1&resourceVersion={revision}&timeoutSeconds=1")
        event = await anext(watch)
        await watch.aclose()
        return bool(event["type"] != "ERROR")

    await asyncio.sleep(2 * BOOKMARK_SECONDS)
    assert await resumes(made[0])
    await asyncio.sleep(BOOKMARK_SECONDS)
    assert not await resumes(made[0]) and await resumes(made[250])
    server.close()


def test_what_changed_minutes_ago_is_forgotten(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    in_no_time(changed_often())


async def test_parts_of_the_server_find_what_is_stored() -> None:
    server = ApiServer.build(MemoryStorage(), KINDS, clock=Clock(), connector=nowhere)
    await server.start()
    await make(server, "/api/v1/nodes", {"metadata": {"name": "here"}})
    assert server.objects.get(Node, "", "here").metadata.name == "here"
    with pytest.raises(StatusError, match='nodes "there" not found') as missing:
        server.objects.get(Node, "", "there")
    assert missing.value.code == 404
    server.close()
