"""How many seats a request takes while it is answered. Pure.

Kubernetes' numbers: a list is as wide as the bytes it may read, and a write as the watchers it is told to.
There a write is one seat wide until it is answered and keeps seats for some milliseconds after it; here its
watchers are told before it is answered, so it has its width from the start.
"""

from __future__ import annotations

from math import ceil
from typing import Protocol

from podling.apiserver.authz.authorizers import asked
from podling.apiserver.request.request import Query, RequestInfo, flag

BYTES_A_SEAT = 100_000
MOST_BYTES = 1_000_000
"""What a list holds of its answer at a time: it is sent as it is made."""
WATCHERS_A_SEAT = 10
WIDEST = 10
"""Seats of the widest request at a level with many seats."""
WIDEST_PART = 0.15
"""Of the seats of its level, a request has at most so much."""
WRITES = frozenset({"create", "update", "patch", "delete"})


SINGLE = ("serviceaccounts", "token")
"""Created without any object being written."""


class Sized(Protocol):
    """The watch cache of a resource: its objects, their bytes together, and who watches them."""

    @property
    def size(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def watchers(self) -> int: ...


def width_of(info: RequestInfo, query: Query, cache: Sized, nominal: int) -> int:
    """Seats of a request at a level that has `nominal` ones."""
    if info.verb in WRITES and (info.resource, info.subresource) != SINGLE:
        return width_of_write(cache.watchers, widest(nominal))
    if info.verb == "list" or (info.verb == "watch" and begins_with_a_list(query)):
        width = width_of_list(cache, query, widest(nominal))
        return 1 if width == 1 or asked(info, query).name else width
    return 1


def begins_with_a_list(query: Query) -> bool:
    """Whether a watch is sent what there is before what happens."""
    if "sendInitialEvents" in query:
        return flag(query, "sendInitialEvents")
    return query.get("resourceVersion", ("",))[0] in ("", "0")


def widest(nominal: int) -> int:
    """Seats of the widest request of a level that has so many."""
    return max(1, min(WIDEST, ceil(nominal * WIDEST_PART)))


def width_of_list(cache: Sized, query: Query, most: int) -> int:
    """Seats of a list of a resource, whichever of its objects are selected."""
    size = cache.bytes
    if "limit" in query:
        limit = query["limit"][0]
        if limit.isdecimal() and len(limit) < 10 and 0 < int(limit) < cache.size:
            size = size * int(limit) // cache.size
    return max(1, min(most, -(-min(size, MOST_BYTES) // BYTES_A_SEAT)))


def width_of_write(watchers: int, most: int) -> int:
    # Asked for every write: most have few watchers.
    return 1 if watchers <= WATCHERS_A_SEAT else min(most, -(-watchers // WATCHERS_A_SEAT))
