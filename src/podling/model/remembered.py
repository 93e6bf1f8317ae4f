"""A cache for pure functions of what clients send, bounded in entries and in the length of each key.

Clients choose the keys, so a cache that bounded only its entries could be made to hold any amount of memory.
`tests/unit/test_caches.py` holds every other cache of the project against a list of those known to be
bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

LONGEST = 1024
"""Length of the longest key that is cached. What clients ask again and again is shorter."""

P = ParamSpec("P")
T = TypeVar("T")


def remembered(entries: int, longest: int = LONGEST) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache up to `entries` results of a pure function whose first argument a client chose. A first argument
    longer than `longest` is not cached."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = cast(Callable[P, T], lru_cache(maxsize=entries)(function))

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            key: Any = args[0]
            return found(*args, **kwargs) if len(key) <= longest else function(*args, **kwargs)

        return ask

    return remember
