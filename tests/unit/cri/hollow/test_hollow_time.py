"""Time moved by hand."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from podling.cri.hollow.script import VirtualTimers


def test_what_falls_due_is_called_in_order_at_its_time() -> None:
    timers = VirtualTimers()
    heard: list[tuple[str, float]] = []
    start = timers.now()

    def hear(name: str) -> None:
        heard.append((name, (timers.now() - start).total_seconds()))

    def ask() -> None:
        hear("early")
        timers.call_later(2, lambda: hear("asked for then"))

    timers.call_later(10, lambda: hear("late"))
    timers.call_later(1, ask)
    timers.advance(5)
    assert heard == [("early", 1), ("asked for then", 3)]
    timers.advance(5)
    assert heard[2:] == [("late", 10)]
    assert timers.now() - start == timedelta(seconds=10)


async def test_sleep_ends_when_time_has_passed() -> None:
    timers = VirtualTimers()
    async with asyncio.TaskGroup() as group:
        sleeper = group.create_task(timers.sleep(300))
        await asyncio.sleep(0)
        timers.advance(299)
        await asyncio.sleep(0)
        assert not sleeper.done()
        timers.advance(1)
