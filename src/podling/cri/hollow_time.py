"""The time of the in-memory runtime: real, or moved by hand so that a test of ten minutes takes none."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

from podling.model.time import SystemClock

_START = datetime(2026, 1, 1, tzinfo=UTC)


class Timers(Protocol):
    """A clock (`podling.model.time.Clock`) that can also be asked to call back. What is called cannot be
    called off: it looks whether it still matters."""

    def now(self) -> datetime: ...
    def call_later(self, seconds: float, what: Callable[[], None]) -> None: ...


class SystemTimers(SystemClock):
    """Real time, on the running event loop."""

    def call_later(self, seconds: float, what: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, what)


class VirtualTimers:
    """Time stands still until `advance`."""

    def __init__(self, start: datetime = _START) -> None:
        self._now = start
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._now

    def call_later(self, seconds: float, what: Callable[[], None]) -> None:
        due = self._now + timedelta(seconds=seconds)
        heapq.heappush(self._due, (due, next(self._order), what))

    async def sleep(self, seconds: float) -> None:
        """As asyncio.sleep, in this time."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: None if done.done() else done.set_result(None))
        await done

    def advance(self, seconds: float) -> None:
        """Let time pass: what falls due is called in its order, at its time, including what that asks for in
        turn."""
        end = self._now + timedelta(seconds=seconds)
        while self._due and self._due[0][0] <= end:
            self._now, _, what = heapq.heappop(self._due)
            what()
        self._now = end
