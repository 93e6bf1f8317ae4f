"""Listens at ports that come and go, each as soon as it is free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from typing import Generic, TypeVar

from podling.process.waits import Backoff, Turn

K = TypeVar("K", bound=Hashable)
AGAIN = Backoff(1.0, 30.0)
"""Until a port is asked for again at which nobody could listen."""

Listen = Callable[[K], Awaitable[AsyncExitStack]]
"""Listens for a key until the stack is closed. Raises OSError."""


class Listeners(Generic[K]):
    """`run()` it. `failed` is told once of each key for which nobody could listen."""

    def __init__(self, listen: Listen[K], failed: Callable[[K, OSError], Awaitable[None]]) -> None:
        self._listen, self._failed = listen, failed
        self._wanted: dict[K, None] = {}
        self._changed: dict[K, None] = {}
        self._wake = asyncio.Event()

    def want(self, key: K, *, is_wanted: bool = True) -> None:
        if is_wanted == (key in self._wanted):
            return
        if is_wanted:
            self._wanted[key] = None
        else:
            del self._wanted[key]
        self._changed[key] = None
        self._wake.set()

    async def run(self) -> None:
        open_now: dict[K, AsyncExitStack] = {}
        retry, missing, turn = AGAIN.begin(), dict[K, None](), Turn()
        try:
            while True:
                try:
                    async with asyncio.timeout(retry.next() if missing else None):
                        await self._wake.wait()
                    retry.reset()
                except TimeoutError:
                    self._changed |= missing
                self._wake.clear()
                keys, self._changed = self._changed, {}
                for key in keys:
                    if key in open_now and key not in self._wanted:
                        await open_now.pop(key).aclose()
                # Only now: one may want the port that another had.
                for key in keys:
                    was_missing = key in missing
                    missing.pop(key, None)
                    if key in open_now or key not in self._wanted:
                        continue
                    try:
                        open_now[key] = await self._listen(key)
                    except OSError as error:
                        missing[key] = None
                        if not was_missing:
                            await self._failed(key, error)
                    await turn.share()
        finally:
            for one in open_now.values():
                await one.aclose()
