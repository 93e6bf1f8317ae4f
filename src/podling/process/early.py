"""Before there is an event loop: a coroutine begins as a function does, and enters a loop where it first
needs one. Until then asyncio is not imported, and what is waited for is waited for by the whole process.
"""

from __future__ import annotations

import signal
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end programs."""
_held: set[int] = set()


def is_in_loop() -> bool:
    """Whether there is an event loop for who asks."""
    if "asyncio" not in sys.modules:
        return False
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@types.coroutine
def event_loop() -> Generator[None, None, None]:
    """Returns within an event loop: to `run`, what is yielded says that it is needed."""
    if not is_in_loop():
        yield


def within(seconds: float) -> AbstractAsyncContextManager[object]:
    """As `asyncio.timeout`. Without a loop nothing interrupts the block: who waits in it has a limit of his
    own."""
    if not is_in_loop():
        return nullcontext()
    import asyncio

    return asyncio.timeout(seconds)


def hold_signals() -> None:
    """Without a loop, have those that end programs wait until `release_signals`, once whoever answers to them
    is there: what was begun is to be ended as well."""
    if not is_in_loop():
        _held.update({*ENDING} - signal.pthread_sigmask(signal.SIG_BLOCK, ENDING))


def release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _held)
    _held.clear()


def run(work: Coroutine[Any, Any, T], in_loop: Callable[[Awaitable[T]], T]) -> T:
    """Run to the end and return what it returns; from where it needs a loop on by `in_loop`."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    return in_loop(_rest(work))


@types.coroutine
def _rest(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    # `await` takes no coroutine that has begun.
    result: T = yield from work
    return result
