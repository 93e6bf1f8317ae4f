from __future__ import annotations

import asyncio

import pytest

from podling.process.wake import woken


async def test_who_waits_can_be_ended_just_when_the_event_comes() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(woken(event, 60))
        await asyncio.sleep(0)
        event.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize("seconds", [0, 60, None])
async def test_who_waits_for_what_has_come_goes_on(seconds: float | None) -> None:
    event = asyncio.Event()
    event.set()
    assert await woken(event, seconds)


@pytest.mark.parametrize("seconds", [-1, 0, 0.001])
async def test_who_waits_in_vain_is_told_so(seconds: float) -> None:
    assert not await woken(asyncio.Event(), seconds)
