"""What acts on objects, as far as it does so without an API server: when the second wave begins."""

from __future__ import annotations

import asyncio

import pytest

from podling.assemble.controllers import node_started


async def test_who_waits_for_the_node_can_be_ended_just_when_it_starts() -> None:
    started = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(node_started(started))
        await asyncio.sleep(0)
        started.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_who_waits_for_the_node_goes_on_when_it_starts() -> None:
    started = asyncio.Event()
    started.set()
    await node_started(started)
