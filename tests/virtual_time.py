"""An event loop whose time jumps to the next timer whenever nothing else can happen."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of sleeping until the next timer it moves the time; it only waits for threads that are at
    work."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := super().select(0):
            return ready
        if self.threads:
            return super().select(5.0 if timeout else 0)
        if timeout is None:
            raise AssertionError("nothing can happen any more")
        self.time += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.time

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        self._jumping.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Python 3.12 and later give the threads a time, which must not be jumped over."""
        self._jumping.threads += 1
        await super().shutdown_default_executor()

    def _thread_done(self, future: object) -> None:
        self._jumping.threads -= 1
