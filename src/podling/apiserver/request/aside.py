"""Long work, done aside: what would hold the loop for more than a few milliseconds runs in a thread.

Such work is pure: nobody waits for it when its request is cancelled, and once begun it goes on to its end all
the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SHORT = 64 * 1024
"""Bytes that are read, checked and written within 20 ms, whatever they say."""

_thread = ThreadPoolExecutor(1, "aside")
# One, for all requests: threads share Python's lock, so more of them finish nothing earlier. But each that
# computes takes its turn at the lock before the loop has its next one.


async def aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work`, on `size` bytes, returns; at once when these are few: a thread takes 0.1 ms to ask."""
    if size <= SHORT:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread, partial(work, *args, **kwargs))
