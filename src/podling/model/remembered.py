"""A bounded cache for pure functions of what a client sent: bounded in entries and in the length of each key.

The keys come from clients, so a cache that bounds only its entries can be made to hold any amount of memory.
`tests/unit/test_caches.py` refuses every other cache in the project that is not known to be bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

LONGEST = 1024
"""Longest key that is cached, as `len` counts it. What clients ask again and again is shorter."""

P = ParamSpec("P")
T = TypeVar("T")


def remembered(entries: int, longest: int = LONGEST) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache up to `entries` results of a pure function whose first argument a client chose. A first argument
    longer than `longest` is not cached."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = cast(Callable[P, T], lru_cache(maxsize=entries)(function))

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            short = len(cast(Sized, args[0])) <= longest
            return found(*args, **kwargs) if short else function(*args, **kwargs)

        return ask

    return remember
