"""`Turn` divides long work on the event loop, so that other tasks get their turns.

An `await` that finds nothing to wait for does not let other tasks run, so a loop over many things must yield
by itself.
"""

from __future__ import annotations

import asyncio
import time

LONGEST = 0.01
"""Seconds of a turn."""


class Turn:
    """The time since its owner last yielded."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def share(self) -> None:
        """Let other tasks run if this turn has lasted LONGEST. Call it between any two things."""
        if time.monotonic() - self._began >= LONGEST:
            await asyncio.sleep(0)
            self._began = time.monotonic()
