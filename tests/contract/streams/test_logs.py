"""Logs through the kubelet's server, written by a real runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import aiohttp
import pytest

from podling.apiserver.connect.kubelets import http_connector

if TYPE_CHECKING:
    from contract.streams.conftest import Node

pytestmark = pytest.mark.containerd

Logs = Callable[..., AbstractAsyncContextManager[aiohttp.ClientResponse]]


@pytest.fixture
async def logs(node: Node) -> AsyncIterator[Logs]:
    """Asks for the log of a container of the pod."""
    connector = http_connector(node.address)
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{node.address.port}", connector=connector
    ) as session:

        def ask(container: str, **query: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
            return session.get(f"/containerLogs/default/pod/{container}", params=query)

        yield ask


async def test_following_gives_every_line_and_ends_with_the_container(node: Node, logs: Logs) -> None:
    """R-INIT-8: the last words are never missing, over many runs of a container that prints and ends."""
    for run in range(10):
        name = f"c{run}"
        await node.make(name, "sh", "-c", "echo first; sleep 0.05; echo last")
        async with asyncio.timeout(10), logs(name, follow="true") as response:
            assert (response.status, await response.text()) == (200, "first\nlast\n")


async def test_the_log_of_an_ended_container_stays_readable(node: Node, logs: Logs) -> None:
    container = await node.make("c", "sh", "-c", "echo out; echo err >&2")
    await node.host.container_ended(container)
    async with logs("c", follow="true") as response:
        assert sorted((await response.text()).split()) == ["err", "out"]
    async with logs("c", tailLines="1", timestamps="true") as response:
        timestamp, word = (await response.text()).split()
        assert len(timestamp) >= len("2016-10-06T00:17:09.669794202Z")
        assert word in ("out", "err")


async def test_a_log_asked_for_after_the_end_is_whole(node: Node, logs: Logs) -> None:
    """R-CLI-3: kubectl asks so for what a container printed that ended before it could attach. The kubelet
    knows of the end before the runtime has written all of the log."""
    container = await node.make("c", "sh", "-c", "echo first; sleep 1; echo last")
    node.host.exit_codes[container] = 0
    node.host.ended.setdefault(container, asyncio.Event()).set()
    async with asyncio.timeout(10), logs("c") as response:
        assert (response.status, await response.text()) == (200, "first\nlast\n")


async def test_a_client_that_leaves_does_not_stop_the_others(node: Node, logs: Logs) -> None:
    container = await node.make("c", "sh", "-c", "while true; do echo tick; sleep 0.05; done")
    async with logs("c", follow="true") as leaves, logs("c", follow="true") as stays:
        assert await leaves.content.readline() == b"tick\n"
        leaves.close()
        for _ in range(3):
            assert await stays.content.readline() == b"tick\n"
        await node.host.runtime.stop_container(container, 0)
        async with asyncio.timeout(10):
            assert set((await stays.text()).split()) <= {"tick"}


async def test_what_is_not_there_is_said_as_the_kubelet_says_it(node: Node, logs: Logs) -> None:
    async with logs("missing") as response:
        assert (response.status, await response.text()) == (
            404,
            'container "missing" not found in pod "pod"\n',
        )
