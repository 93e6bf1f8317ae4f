"""Waiting for an event or a time, whichever comes first."""

from __future__ import annotations

import asyncio


async def woken(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether the event came within so many seconds; None waits for it however long it takes."""
    # `wait_for` of Python 3.11 loses a cancellation that comes with the event: its task would never end.
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
