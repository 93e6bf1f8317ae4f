"""Leases of keys that etcd deletes by itself: those of one length share a lease, as kube-apiserver's do.

A lease lasts longer than its keys by a twentieth, or by REUSED_FOR if that is less, and takes keys until this
is over: a key lives as long as was asked for, or up to so much longer. (kube-apiserver's lease manager.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

REUSED_FOR = 60
MOST_KEYS = 1000
"""Of one lease: etcd deletes them all at once."""

Grant = Callable[[int], Awaitable[int]]
"""Asks etcd for a lease of so many seconds; returns its ID."""


class _Granted(NamedTuple):
    id: int
    takes_until: float
    """Which time a key may come at the latest."""


class Leases:
    def __init__(self, grant: Grant, time: Callable[[], float]) -> None:
        self._grant = grant
        self._time = time
        self._newest: dict[int, _Granted] = {}
        """By seconds that keys live."""
        self._keys: dict[int, int] = {}
        """How many keys have the newest lease, by the same."""

    async def lease(self, ttl: int) -> int:
        """The ID of a lease for one key, which is to live `ttl` seconds; 0 for none. Raises what `grant`
        raises."""
        if not ttl:
            return 0
        newest = self._newest.get(ttl)
        if newest is None or self._time() >= newest.takes_until or self._keys[ttl] >= MOST_KEYS:
            begun, longer = self._time(), min(ttl // 20, REUSED_FOR)
            newest = _Granted(await self._grant(ttl + longer), begun + longer)
            self._newest[ttl], self._keys[ttl] = newest, 0
        self._keys[ttl] += 1
        return newest.id

    def forget(self) -> None:
        """Take new leases from here on: etcd may have lost those."""
        self._newest.clear()
