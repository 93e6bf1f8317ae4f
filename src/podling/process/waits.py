"""How a task waits: for an event or a time, longer after each failure, for its turn on the loop, and for
work in a thread beside it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_TURN = 0.01
"""Seconds."""
SHORT = 64 * 1024
"""Bytes of input; decoding, validating and encoding so many takes at most 20 ms, whatever their content."""
# One thread, for all work beside the loop: threads share Python's lock, so more of them finish nothing
# earlier. But each that computes takes its turn at the lock before the loop has its next one.
_thread = ThreadPoolExecutor(1, "aside")
_waiting = ThreadPoolExecutor(1, "apart")
_MOST_DOUBLINGS = 64
"""More than any backoff needs to reach its longest delay; a float overflows at 1024."""


async def woken(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether the event came within so many seconds; None waits for it however long it takes."""
    # `wait_for` of Python 3.11 loses a cancellation that comes with the event: its task would never end.
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


class Turn:
    """Divides long work on the event loop, so that other tasks get their turns.

    An `await` that finds nothing to wait for does not let other tasks run, so a loop over many things must
    yield by itself."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def share(self) -> None:
        """Let other tasks run if this turn has lasted LONGEST_TURN. Call it between any two things."""
        if time.monotonic() - self._began >= LONGEST_TURN:
            await asyncio.sleep(0)
            self._began = time.monotonic()


class OneATurn:
    """Spreads long pieces of work of many tasks over turns of the loop: one in each, in the order they came.
    A piece begins when `wait` returns and ends at the task's next await."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        if self._is_taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._is_taken = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False


async def aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, in a thread if its input has more than SHORT bytes; a thread costs 0.1 ms.

    The work must be pure: a thread cannot be cancelled, so work that has begun runs to its end even if its
    task is cancelled."""
    if size <= SHORT:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread, partial(work, *args, **kwargs))


async def apart(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `aside`, for work that may itself wait for a process: in a thread that no other work waits for."""
    return await asyncio.get_running_loop().run_in_executor(_waiting, partial(work, *args, **kwargs))


class Backoff(msgspec.Struct, frozen=True):
    """Exponential backoff in seconds: `first` after one failure, then twice as long each time, up to
    `longest`. It only computes; the caller waits."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """Seconds before the next try after so many failures in a row."""
        if failures <= 0:
            return 0.0
        return min(self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest)

    def begin(self) -> Retries:
        return Retries(self)


class Retries:
    """The failures in a row of one thing that is tried again and again."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._failures = 0

    def next(self) -> float:
        """A try has failed. Returns the seconds before the next."""
        self._failures += 1
        return self._backoff.after(self._failures)

    def reset(self) -> None:
        """A try has succeeded."""
        self._failures = 0
