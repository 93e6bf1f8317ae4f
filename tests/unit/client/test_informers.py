"""Informers are shared, and started once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from podling.client.client import Client
from podling.client.informer import Informers
from podling.model.types.core import ConfigMap, Secret

if TYPE_CHECKING:
    from unit.client.conftest import ScriptedServer


def listing(*names: str) -> Any:
    items = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in names]
    return 200, {}, msgspec.json.encode({"items": items, "metadata": {"resourceVersion": "1"}})


async def test_one_informer_a_type_started_once(scripted: type[ScriptedServer]) -> None:
    server = scripted([], lambda: None)
    informers = Informers(Client(server))
    assert informers.of(ConfigMap) is informers.of(ConfigMap)
    async with asyncio.TaskGroup() as tasks:
        started: list[asyncio.Task[None]] = []

        class Watched:
            def create_task(self, coroutine: Any) -> None:
                started.append(tasks.create_task(coroutine))

        server.script.append(listing("a"))
        await informers.start(Watched())  # type: ignore[arg-type]
        assert [one.metadata.name for one in informers.of(ConfigMap).items()] == ["a"]
        informers.of(Secret)
        server.script.append(listing("b"))
        await informers.start(Watched())  # type: ignore[arg-type]
        assert len(started) == 2
        for task in started:
            task.cancel()
    assert [path for method, path, *_ in server.asked if method == "GET"] == [
        "/api/v1/configmaps",
        "/api/v1/secrets",
    ]
