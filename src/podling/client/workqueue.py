"""A queue of keys for reconcilers: a key waits at most once, and is never worked on twice at the same time.

A key added while it is being worked on is queued again when that work is done, so no change is missed.
`retry` is the one place that decides how long a failed key waits.

No controller can hold the event loop: other tasks get a turn between two keys. A key that comes back again
and again (its reconcile adds it, or two controllers undo each other's work) is worked on `AT_ONCE` times and
from then on `A_SECOND` times a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from podling.model.errors import StatusError
from podling.process.waits import Backoff

K = TypeVar("K", bound=Hashable)

RETRY = Backoff(0.005, 1000.0)
AT_ONCE = 30
A_SECOND = 10

log = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._queued: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.Handle]] = {}
        """With the time each is set for: uvloop's handle of a delay below a millisecond does not know it."""
        self._paid_until: dict[K, float] = {}
        """Each turn of a key costs it a part of a second; here is when it has no more to pay. Oldest turn
        first."""
        self._wakeup = asyncio.Event()
        self.adds = 0
        """Keys that became ready, ever."""
        self.retries = 0
        """Keys that were put back because they failed, ever."""

    def __len__(self) -> int:
        """The number of keys that are ready to be worked on."""
        return len(self._ready)

    def add(self, key: K) -> None:
        if key in self._working:
            self._again.add(key)
        elif key in self._queued:
            return
        elif (early := self._early(key)) > 0:
            self.add_after(key, early)
        else:
            self._queued.add(key)
            self._ready.append(key)
            self.adds += 1
            self._wakeup.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`; an earlier time that is already set for it stays."""
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        if key in self._timers:
            earlier, timer = self._timers[key]
            if earlier <= when:
                return
            timer.cancel()
        self._timers[key] = when, loop.call_later(seconds, self._due, key)

    async def get(self) -> K:
        while not self._ready:
            self._wakeup.clear()
            await self._wakeup.wait()
        key = self._ready.popleft()
        self._queued.discard(key)
        self._working.add(key)
        now = asyncio.get_running_loop().time()
        self._paid_until[key] = max(self._paid_until.pop(key, now), now) + 1 / A_SECOND
        # Those that have nothing to pay any more are forgotten: only the busy ones are kept.
        while (oldest := next(iter(self._paid_until))) != key and self._paid_until[oldest] <= now:
            del self._paid_until[oldest]
        return key

    def done(self, key: K) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def forget(self, key: K) -> None:
        """Reset the key's count of failures."""
        self._failures.pop(key, None)

    def retry(self, key: K) -> None:
        """Add `key` again after a delay that grows with each failure since `forget`."""
        self.retries += 1
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, RETRY.after(failures))

    def close(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _early(self, key: K) -> float:
        """Seconds until the key may be worked on again."""
        if key not in self._paid_until:
            return 0.0
        return self._paid_until[key] - (AT_ONCE - 1) / A_SECOND - asyncio.get_running_loop().time()

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)


async def work(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]], name: str) -> None:
    """Reconcile keys for ever, one at a time. Run it several times on one queue to work in parallel.

    After a conflict (409) the key is retried without a log line, since newer objects are on their way. Any
    other error is logged, and the key is retried; a bug that shows with one key must not end the controller
    for the others.
    """
    try:
        while True:
            key = await queue.get()
            try:
                await reconcile(key)
            except StatusError as error:
                if error.code != 409:
                    log.warning("%s %s: %s", name, key, error.message)
                queue.retry(key)
            except Exception:
                log.exception("%s %s", name, key)
                queue.retry(key)
            else:
                queue.forget(key)
            finally:
                queue.done(key)
            # A reconciler that had nothing to wait for has let nobody else run.
            await asyncio.sleep(0)
    finally:
        queue.close()
