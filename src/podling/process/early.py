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
_held: list[int] = []


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
    """Without a loop, have the first signal that would end the program wait until `release_signals`, once
    whoever answers to it is there: what is begun now is to be ended as well. A second one ends it at once."""
    if not is_in_loop():
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _hold)


def _hold(number: int, _: object) -> None:
    _held.append(number)
    for one in ENDING:
        if signal.getsignal(one) is _hold:
            signal.signal(one, signal.SIG_DFL)


def release_signals() -> None:
    while _held:
        signal.raise_signal(_held.pop())


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
