"""The watchdog of the event loop: it logs and counts what keeps the loop from running other tasks.

A thread looks at the loop's thread whenever the process has used `INTERVAL` of processor time, and now and
then for work that waits without using any; while podling is idle the thread sleeps. When the loop's thread is
inside the loop itself, nothing runs, and the look costs nothing more. Otherwise the loop is asked to run a
callback. If it does not within `LIMIT`, the stack is kept, and the stall is logged and counted when it is
over, or has lasted `LONG`.

`ProcessorTimer` runs by the processor time of this process and not by the clock, so it wakes nobody while
nothing happens (timer_create(2), Linux).
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from podling.process.histogram import Histogram

SIGNAL = signal.SIGRTMAX
CLOCK_PROCESS_CPUTIME_ID = 2
SIGEV_THREAD_ID = 4
SIGEVENT_BYTES = 64

_libc = ctypes.CDLL(None, use_errno=True)

log = logging.getLogger(__name__)

INTERVAL = 0.02
"""Seconds of processor time between two looks."""
LONGEST_SLEEP = 1.0
"""Seconds between two looks at a process that uses no processor time. A task that blocks the loop without
computing is found if it blocks that long.
"""
LIMIT = 0.1
LONG = 1.0
LINES_APART = 10.0
"""Seconds between two log lines about short stalls; the next line counts those between."""
LONGEST_PATH = 200
FRAMES = 16
"""Innermost frames of the stack that are logged."""


class _Event(ctypes.Structure):
    """struct sigevent"""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("rest", ctypes.c_byte * (SIGEVENT_BYTES - ctypes.sizeof(ctypes.c_void_p) - 3 * 4)),
    )


class _Times(ctypes.Structure):
    """struct itimerspec: seconds and nanoseconds of the interval, and until the first"""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("first_s", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class ProcessorTimer:
    """Belongs to the thread that makes it: only that thread has the signal blocked and gets it."""

    def __init__(self, interval: float) -> None:
        """`interval` is in seconds of processor time, less than one. Raises OSError."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
        event = _Event(None, SIGNAL, SIGEV_THREAD_ID, threading.get_native_id())
        self._timer = ctypes.c_void_p()
        _checked(_libc.timer_create(CLOCK_PROCESS_CPUTIME_ID, ctypes.byref(event), ctypes.byref(self._timer)))
        nanoseconds = round(interval * 1e9)
        _checked(
            _libc.timer_settime(self._timer, 0, ctypes.byref(_Times(0, nanoseconds, 0, nanoseconds)), None)
        )

    def wait(self, longest: float) -> None:
        """Returns when another `interval` of processor time was used, or after `longest` seconds."""
        signal.sigtimedwait({SIGNAL}, longest)

    def close(self) -> None:
        _libc.timer_delete(self._timer)


def _checked(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno() or errno.ENOSYS
        raise OSError(code, os.strerror(code))


class Stalls(Histogram):
    """How many there were, by how long they lasted; written by one thread."""

    BOUNDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
    """Seconds."""

    def __init__(self) -> None:
        super().__init__(self.BOUNDS)


STALLS = Stalls()
"""Those of this process."""


@contextmanager
def watching(stalls: Stalls = STALLS) -> Iterator[None]:
    """Watch over the loop this runs in."""
    watchdog = Watchdog(asyncio.get_running_loop(), stalls)
    thread = threading.Thread(target=watchdog.run, name="watchdog", daemon=True)
    thread.start()
    # Else what runs next may be over before the thread has had its first turn, and nobody has seen it.
    watchdog.watches.wait()
    try:
        yield
    finally:
        # Not waited for: it may be waiting for this very turn to end.
        watchdog.stop()


class Watchdog:
    """Watches one loop; `watching` runs it on a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stalls: Stalls) -> None:
        """Made on the loop's thread."""
        self.watches = threading.Event()
        """Set when whatever holds the loop from now on is seen, or nothing ever will be."""
        self._stopped = False
        self._loop = loop
        self._thread = threading.get_ident()
        self._stalls = stalls
        self._resting: FrameType | None = None
        """The loop's own frame: the innermost of its thread while nothing runs."""
        self._turned = 0.0
        self._silent_until = 0.0
        self._untold = 0

    def run(self) -> None:
        """On a thread of its own. Raises OSError when the kernel has no such timer."""
        try:
            timer = ProcessorTimer(INTERVAL)
            try:
                self._watch(timer)
            except RuntimeError:
                log.debug("the loop is closed")
            finally:
                timer.close()
        finally:
            self.watches.set()
            self._resting = None

    def stop(self) -> None:
        self._stopped = True

    def _watch(self, timer: ProcessorTimer) -> None:
        while not self._stopped:
            slept_at, used = time.monotonic(), time.process_time()
            self.watches.set()
            timer.wait(LONGEST_SLEEP)
            running = sys._current_frames().get(self._thread)
            if running is not self._resting:
                # Who holds the interpreter, too, lets this thread run no sooner than when that is over.
                now = time.monotonic()
                self._look(max(now - (time.process_time() - used), slept_at), running)

    def _look(self, began: float, running: FrameType | None) -> None:
        """`running` is the innermost of what has been running since `began`."""
        left = began + LIMIT - time.monotonic()
        # Too long already: named before the loop can go on to something else.
        who = self._who(running) if left <= 0 else ""
        sign = threading.Event()
        self._loop.call_soon_threadsafe(self._give_sign, sign)
        if sign.wait(max(left, 0.0)) and self._turned - began < LIMIT:
            return
        who = who or self._who(sys._current_frames().get(self._thread))
        is_told = False
        while not sign.wait(LONG):
            if self._stopped:
                return
            if not is_told:
                log.warning("the loop is being held by %s", who)
            is_told = True
        seconds = self._turned - began
        self.tell(seconds, who, at_once=is_told)
        # Counted when it has been logged: who waits for the count finds the line.
        self._stalls.observe(seconds)

    def tell(self, seconds: float, who: str, *, at_once: bool) -> None:
        """Log a stall, unless it is short and another was logged of late."""
        if time.monotonic() < self._silent_until and not at_once:
            self._untold += 1
            return
        more = f" ({self._untold} more since the last was told of)" if self._untold else ""
        log.warning("the loop was held for %.2f s by %s%s", seconds, who, more)
        self._untold, self._silent_until = 0, time.monotonic() + LINES_APART

    def _give_sign(self, sign: threading.Event) -> None:
        self._turned = time.monotonic()
        self._resting = sys._getframe(1)
        sign.set()

    def _who(self, frame: FrameType | None) -> str:
        """What runs in `frame`: the request that is being answered, of whichever server, as it stands on the
        stack, and the innermost frames."""
        asked, places = "", []
        while frame is not None and frame is not self._resting:
            code = frame.f_code
            places.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{frame.f_lineno} {code.co_name}")
            request = frame.f_locals.get("request")
            method, path = getattr(request, "method", None), getattr(request, "path", None)
            if not asked and isinstance(method, str) and isinstance(path, str):
                asked = f"{method[:LONGEST_PATH]!a} {path[:LONGEST_PATH]!a}: "
            frame = frame.f_back
        return f"{asked}{' < '.join(places[:FRAMES]) or 'what has just ended'}"
