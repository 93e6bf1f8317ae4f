"""Room for what is nested deep.

An expression may have 250 levels (`nesting.py`), and what goes through it enters some functions for each of
them, more than Python lets be entered by default. These are functions of Python, of which a level takes
hardly any of the stack of a thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

DEEP = 10_000
"""Functions within each other."""
T = TypeVar("T")
_lock = Lock()
_inside: list[int] = []
"""The limits as they were, one for each that is inside."""


def with_room(work: Callable[[], T]) -> T:
    """What it comes to; it changes nothing, so it is begun again if it went too deep. Raises RecursionError
    if it does still."""
    try:
        return work()
    except RecursionError:
        pass
    # The limit is that of all threads.
    with _lock:
        _inside.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(DEEP, _inside[0]))
    try:
        return work()
    finally:
        with _lock:
            usual = _inside[0]
            _inside.pop()
            if not _inside:
                sys.setrecursionlimit(usual)
