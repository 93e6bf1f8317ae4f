"""Long work on the loop in short turns, so that everybody else on it has theirs.

Beside the rooms because whoever works through many things needs it: an `await` that finds nothing to wait for
lets nobody else run.
"""

from __future__ import annotations

import asyncio
import time

LONGEST = 0.01
"""Seconds."""


class Turn:
    """What goes on for as long as its owner does not call `share`."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def share(self) -> None:
        """Let the others run if this turn has been a long one. Call it between any two things."""
        if time.monotonic() - self._began >= LONGEST:
            await asyncio.sleep(0)
            self._began = time.monotonic()
