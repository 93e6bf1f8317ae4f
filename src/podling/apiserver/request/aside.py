"""Runs CPU-bound work of a request in a thread if its input is large, so that it does not block the loop.

The work must be pure: a thread cannot be cancelled, so work that has begun runs to its end even if its
request is cancelled.
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
"""Bytes of input; decoding, validating and encoding so many takes at most 20 ms, whatever their content."""

_thread = ThreadPoolExecutor(1, "aside")
# One, for all requests: threads share Python's lock, so more of them finish nothing earlier. But each that
# computes takes its turn at the lock before the loop has its next one.


async def aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, in a thread if its input has more than SHORT bytes; a thread costs 0.1 ms."""
    if size <= SHORT:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread, partial(work, *args, **kwargs))
