"""R-SYS-1: the asynchronous half of the official Python client: many requests and watches in one loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from kubernetes.aio import client, config, watch
from kubernetes.aio.client import ApiException
from kubernetes.aio.stream import WsApiClient

from e2e.clients.required import required

if TYPE_CHECKING:
    from e2e.clients.conftest import Manifest

pytestmark = pytest.mark.containerd

PATIENCE = 60


@pytest.fixture
async def configuration(admin: str) -> client.Configuration:
    configuration = client.Configuration()
    await config.load_kube_config(admin, client_configuration=configuration)
    return configuration


@pytest.fixture
async def core(configuration: client.Configuration) -> AsyncIterator[client.CoreV1Api]:
    async with client.ApiClient(configuration) as api:
        yield client.CoreV1Api(api)


async def test_many_at_once_are_watched_in_the_order_of_their_versions(
    core: client.CoreV1Api, space: str
) -> None:
    start = required((await core.list_namespaced_secret(space)).metadata).resource_version
    names = [f"s{number:02}" for number in range(40)]
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(core.create_namespaced_secret(space, {"metadata": {"name": name}}))  # type: ignore[arg-type]
    events = watch.Watch().stream(
        core.list_namespaced_secret, space, resource_version=start, timeout_seconds=1
    )
    seen = [event["object"].metadata async for event in events]
    versions = [int(meta.resource_version) for meta in seen]
    assert sorted(meta.name for meta in seen) == names and versions == sorted(set(versions))


async def test_writers_of_one_object_lose_nothing(core: client.CoreV1Api, space: str) -> None:
    """Optimistic locking: who comes too late reads and tries again."""
    await core.create_namespaced_config_map(space, {"metadata": {"name": "count"}, "data": {"n": "0"}})  # type: ignore[arg-type]
    refused = 0

    async def add() -> None:
        nonlocal refused
        while True:
            counter = await core.read_namespaced_config_map("count", space)
            required(counter.data)["n"] = str(int(required(counter.data)["n"]) + 1)
            try:
                await core.replace_namespaced_config_map("count", space, counter)
                return
            except ApiException as error:
                assert error.status == 409
                refused += 1

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(add())
    assert (await core.read_namespaced_config_map("count", space)).data == {"n": "12"}
    assert refused


async def test_a_command_in_a_pod(
    core: client.CoreV1Api, configuration: client.Configuration, space: str, web: Manifest
) -> None:
    await core.create_namespaced_pod(space, web)  # type: ignore[arg-type]
    events = watch.Watch().stream(core.list_namespaced_pod, space, timeout_seconds=PATIENCE)
    async with events:
        async for event in events:
            conditions = event["object"].status.conditions or []
            if any(condition.type == "Ready" and condition.status == "True" for condition in conditions):
                break
    async with WsApiClient(configuration) as api:
        said = await client.CoreV1Api(api).connect_get_namespaced_pod_exec(
            "web", space, command=["cat", "/www/index.html"], stderr=True, stdin=False, stdout=True, tty=False
        )
    assert said == "served\n"
    assert await core.read_namespaced_pod_log("web", space) == ""
