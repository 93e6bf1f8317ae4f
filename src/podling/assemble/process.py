"""The process around the parts: log, garbage collector, event loop with its watchdog, and the signals that
end it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import platform
import signal
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from podling.machine.start import StartError
from podling.process import watchdog
from podling.process.programs import raise_limit

COLLECT_AFTER = 1_000_000
"""New objects between two runs of Python's cyclic garbage collector while a process starts: more than a start
makes. With the default of 700 it would take a tenth of the start; one run over the 100,000 objects that the
imports make takes as long as to import all kinds, and finds 2,000 to free."""
COLLECT_STARTED = (5_000, 10, 50)
"""The same once it has started, and how many of those runs are between two over what is older. A run over
5,000 new objects holds the loop for 1 ms at most, one over 50,000 for 2, one over 250,000 for 4 and more."""
SWITCH_AFTER = 0.0001
"""Seconds a thread may compute while the event loop waits for Python's interpreter lock. The loop releases
the lock at each poll for events, so while a thread computes it waits this long several times a request."""
SLICE = 100_000
"""Nanoseconds of processor time that the loop asks for at a time. Who asks for less is due sooner: Linux
(6.12) lets it run before the thread beside it or the flood's client has had its own slice of 1 to 3 ms."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call."""
_RESET_ON_FORK = 1
"""For this thread only, not for those it makes, or for other programs."""

Report = Callable[[str], None]
Main = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set."""


def run(main: Main) -> None:
    """Run `main` until SIGTERM or SIGINT tells it to end. Raises StartError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    tune()
    raise_limit()

    async def until_told() -> None:
        loop, told_to_stop = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(tell)

        def told() -> None:
            told_to_stop.set()
            # Seen from outside, that SIGTERM is ignored now says that this was heard (`down.py`).
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told)
        with watchdog.watching():
            await main(told_to_stop)

    try:
        uvloop.run(until_told())
    except BaseExceptionGroup as errors:
        starting, others = errors.split(StartError)
        if starting is None or others is not None:
            raise
        raise first(starting) from errors


def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in the loop with nobody to be told of it."""
    error = context.get("exception")
    if isinstance(error, RuntimeError) and str(error).endswith("the handler is closed"):
        # uvloop: the end of a handshake has nowhere to go if who connects was cancelled meanwhile.
        return
    loop.default_exception_handler(context)


def tune() -> None:
    """Set the interpreter up for one loop that is to answer soon."""
    gc.set_threshold(COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_AFTER)
    ask_for_slice(SLICE)


def ask_for_slice(nanoseconds: int) -> None:
    """Have the calling thread scheduled in slices of that length; 0 for the system's own. An older kernel
    takes no notice."""
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period.
    asked = struct.pack("IIQiIQQQ", 48, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, nanoseconds, 0, 0)
    ctypes.CDLL(None).syscall(number, 0, asked, 0)


def started() -> None:
    """What has been made by now stays to the end: the collector need not go through it again and again."""
    gc.freeze()
    gc.set_threshold(*COLLECT_STARTED)


def first(errors: BaseExceptionGroup[StartError]) -> StartError:
    """The error of a group to show: its first, because the others followed from it."""
    error = errors.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error
