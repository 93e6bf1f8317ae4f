"""The client's transport without sockets: the same answers as over HTTPS."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from podling.apiserver.http.local import LocalTransport
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ObjectMeta
from podling.model.types.rbac import AUTHENTICATED, MASTERS

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation


@pytest.fixture
def client(api: Conversation) -> Client:
    return Client(LocalTransport(api.server.handle, User("me", (MASTERS, AUTHENTICATED))))


async def test_the_client_reads_and_writes(client: Client) -> None:
    meta = ObjectMeta(name="a", namespace="default", labels={"app": "x"})
    made = await client.create(ConfigMap(metadata=meta, data={"k": "v"}))
    assert await client.get(ConfigMap, "a", "default") == made
    listing = await client.list(ConfigMap, "default", label_selector="app=x")
    assert listing.items == [made]
    patched = await client.patch(ConfigMap, "a", "default", {"data": {"k": "w"}})
    assert patched.data == {"k": "w"}
    await client.delete(ConfigMap, "a", "default", uid=made.metadata.uid)
    with pytest.raises(StatusError) as raised:
        await client.get(ConfigMap, "a", "default")
    assert raised.value.code == 404


async def test_the_client_watches(client: Client, api: Conversation) -> None:
    start = (await client.list(ConfigMap, "default")).resource_version
    async with aclosing(client.watch(ConfigMap, "default", resource_version=start)) as watch:
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        (event,) = await anext(watch)
        assert (event.type, event.object.metadata.name) == ("ADDED", "a")


async def test_the_user_is_who_it_says(api: Conversation) -> None:
    stranger = Client(LocalTransport(api.server.handle, User("system:anonymous")))
    with pytest.raises(StatusError) as raised:
        await stranger.list(ConfigMap, "default")
    assert raised.value.code == 403


async def test_a_refused_stream_is_an_error(api: Conversation) -> None:
    transport = LocalTransport(api.server.handle, User("me", (MASTERS, AUTHENTICATED)))
    with pytest.raises(StatusError) as raised:
        async for _ in transport.stream("/api/v1/configmaps", {"watch": "1", "labelSelector": "==="}):
            pass
    assert raised.value.code == 400


async def test_requests_and_streams_are_asked_for_apart(api: Conversation) -> None:
    transport = LocalTransport(api.server.handle, User("me", (MASTERS, AUTHENTICATED)))
    with pytest.raises(ValueError, match="stream"):
        await transport.request("GET", "/api/v1/configmaps", {"watch": "1"}, None)


async def test_who_asks_without_end_lets_the_others_run(client: Client) -> None:
    turns, done = 0, False

    async def ask() -> None:
        while not done:
            await client.list(ConfigMap, "default")
            if time.monotonic() > began + 10:
                raise Held

    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask())
        tasks.create_task(ask())
        while turns < 10:
            turns += 1
            await asyncio.sleep(0)
        done = True


class Held(BaseException):
    """The loop was held: nobody else would ever run."""
