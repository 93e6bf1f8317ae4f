"""A timer that runs by the processor time this process uses, not by the clock: while nothing happens it wakes
nobody (timer_create(2), Linux)."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import threading

SIGNAL = signal.SIGRTMAX
CLOCK_PROCESS_CPUTIME_ID = 2
SIGEV_THREAD_ID = 4
SIGEVENT_BYTES = 64

_libc = ctypes.CDLL(None, use_errno=True)


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
    """Of the thread that makes it, and for that thread only: no other has the signal blocked, or gets it."""

    def __init__(self, interval: float) -> None:
        """`interval` is in seconds of processor time, below one. Raises OSError."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
        event = _Event(None, SIGNAL, SIGEV_THREAD_ID, threading.get_native_id())
        self._timer = ctypes.c_void_p()
        _checked(_libc.timer_create(CLOCK_PROCESS_CPUTIME_ID, ctypes.byref(event), ctypes.byref(self._timer)))
        nanoseconds = round(interval * 1e9)
        _checked(
            _libc.timer_settime(self._timer, 0, ctypes.byref(_Times(0, nanoseconds, 0, nanoseconds)), None)
        )

    def wait(self, longest: float) -> None:
        """Returns when another `interval` has been used, or after `longest` seconds."""
        signal.sigtimedwait({SIGNAL}, longest)

    def close(self) -> None:
        _libc.timer_delete(self._timer)


def _checked(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno() or errno.ENOSYS
        raise OSError(code, os.strerror(code))
