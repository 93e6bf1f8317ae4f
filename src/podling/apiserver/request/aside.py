"""Long work, done aside: what would hold the loop for more than a few milliseconds runs in a thread.

Such work is pure: nobody waits for it when its request is cancelled, and it goes on to its end all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SHORT = 64 * 1024
"""Bytes that are read, checked and written within 20 ms, whatever they say."""


async def aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work`, on `size` bytes, returns; at once when these are few: a thread takes 0.1 ms to ask."""
    if size <= SHORT:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
