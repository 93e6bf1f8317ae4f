"""Answers that are remembered, within bounds: so many of them, and none to a long question.

What a client sends becomes a key, so a cache that counts its entries alone holds as much as clients care to
send. `tests/unit/test_caches.py` refuses every other cache of the project that is not known to be bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

LONGEST = 1024
"""Of a key, as `len` counts it: what clients ask again and again is shorter."""

P = ParamSpec("P")
T = TypeVar("T")


def remembered(entries: int, longest: int = LONGEST) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember up to `entries` answers of a pure function whose first argument is the one a client chose;
    with one longer than `longest` it is asked each time."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = cast(Callable[P, T], lru_cache(maxsize=entries)(function))

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            short = len(cast(Sized, args[0])) <= longest
            return found(*args, **kwargs) if short else function(*args, **kwargs)

        return ask

    return remember
