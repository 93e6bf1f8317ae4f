"""Lets the windows of all caches shrink with age: many changes of a resource are not needed for long.

A change goes once it is older than `AGE` ticks and the store has compacted it, so a watch that was cut may
resume, and the pages of a list go on, for as long as ever. A tick is a minute.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Collection
from functools import partial

from podling.process.waits import long_work
from podling.watch.cache import ResourceCache

AGE = 2
"""Kubernetes' watch cache forgets after 75 s what it has no room for."""
WORTHWHILE = 1_000
"""Changes, of some kilobytes each, whose memory is given back to the system at the next tick."""

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""glibc's; other C libraries have none."""


def give_back() -> None:
    """Give whole pages that are free back to the system. malloc itself gives back the end of its heap only,
    and something that lives on is always there. Takes 2 ms for 30 MB."""
    if _trim is not None:
        _trim(0)


class Forgetting:
    def __init__(self, caches: Collection[ResourceCache]) -> None:
        self._caches = caches
        self._ticks: deque[int] = deque(maxlen=AGE + 1)
        """Revisions, oldest first."""
        self._forgotten = 0

    def tick(self, revision: int) -> None:
        """The store is at `revision`. What is old goes in later turns of the loop, a piece in each."""
        if self._forgotten >= WORTHWHILE:
            self._forgotten = 0
            give_back()
        self._ticks.append(revision)
        if len(self._ticks) > AGE:
            for cache in self._caches:
                long_work().call(partial(self._forget, cache, self._ticks[0]))

    def _forget(self, cache: ResourceCache, revision: int) -> bool:
        forgotten = cache.forget_past(revision)
        self._forgotten += forgotten
        if forgotten:
            long_work().call(partial(self._forget, cache, revision))
        return forgotten > 0
