"""Events of the audit log on their way to a file or a webhook, one batch at a time.

    write ─▶ waiting ─▶ batch ─▶ deliver
                 what a request waits for: nothing, or that its own events are delivered (`kept`)

Kubernetes' modes: `batch` loses what a full buffer does not take, and nobody waits; with `blocking` a request
is answered once its events are delivered or lost, and with `blocking-strict` it is refused if the event of
its beginning is lost. In each of them one batch is on its way at a time, so requests share it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from typing import ClassVar, NamedTuple

from podling.process.waits import woken

FULL_BYTES = 64 * 1024 * 1024
CROWDED_BYTES = 4 * 1024 * 1024

log = logging.getLogger(__name__)


class Batching(NamedTuple):
    """How events are gathered: at most `max_size` of them, which have `max_bytes`, 0 for any number, for
    `max_wait` seconds; `qps` batches a second, and `burst` after a while without. Of more than `buffer_size`
    that wait the newest is lost; 0 for none: then requests wait while there are more than CROWDED_BYTES."""

    buffer_size: int = 0
    max_size: int = 0
    max_wait: float = 0.0
    qps: float = math.inf
    burst: int = 0
    max_bytes: int = 0


class Batches:
    """A `Sink` of the audit log; `_deliver` says where its batches go."""

    name: str
    COMPLAINT: ClassVar[str]

    def __init__(self, batching: Batching, mode: str) -> None:
        self.mode = mode
        self.lost = 0
        """Events that could not be delivered."""
        self.fault = ""
        """Why the last batch was lost, empty when it was not."""
        self._batching = batching
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._enough = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = asyncio.Event()
        self._taken = self._done = 0
        """Events that ever waited, and those of them that are delivered or lost."""
        self._asking: deque[tuple[int, asyncio.Future[bool]]] = deque()
        """How many events must be done until who asks goes on."""

    @property
    def full(self) -> bool:
        return not self._batching.buffer_size and self._waiting_bytes > CROWDED_BYTES

    async def room(self) -> None:
        while self.full:
            self._room.clear()
            await self._room.wait()

    def write(self, event: bytes) -> None:
        buffer = self._batching.buffer_size
        if (buffer and len(self._waiting) >= buffer) or self._waiting_bytes > FULL_BYTES:
            self._lose(1, "more events than it takes are waiting for it")
            return
        self._waiting.append(event)
        self._taken += 1
        self._waiting_bytes += len(event) + 1
        self._news.set()
        if self.full or self._is_enough:
            self._enough.set()

    def kept(self) -> asyncio.Future[bool]:
        """Waits until what was written by now is delivered; False if the last of it is lost."""
        if self._asking and self._asking[-1][0] == self._taken:
            return asyncio.shield(self._asking[-1][1])
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._done == self._taken or self._closed.is_set():
            outcome.set_result(True)
            return outcome
        self._asking.append((self._taken, outcome))
        self._enough.set()
        return asyncio.shield(outcome)

    async def run(self) -> None:
        """Deliver batches until closed, and then what is left."""
        loop, batching = asyncio.get_running_loop(), self._batching
        allowed, counted = float(batching.burst), loop.time()
        try:
            while self._waiting or not self._closed.is_set():
                await self._news.wait()
                await woken(self._enough, batching.max_wait)
                if batching.qps < math.inf:
                    now = loop.time()
                    allowed = min(allowed + (now - counted) * batching.qps, batching.burst) - 1
                    counted = now
                    if allowed < 0:
                        await woken(self._closed, -allowed / batching.qps)
                await self.deliver_next()
        finally:
            self._left(list(self._waiting))
            self._answer(self._taken, is_kept=False)

    def close(self) -> None:
        self._closed.set()
        self._enough.set()
        self._news.set()

    async def deliver_next(self) -> None:
        batch = self._batch()
        if not batch:
            return
        why = "it was interrupted"
        try:
            why = await self._deliver(batch)
        finally:
            self._done += len(batch)
            self._answer(self._done, is_kept=not why)
        if why:
            self._lose(len(batch), why)
        else:
            self.fault = ""

    def _answer(self, done: int, *, is_kept: bool) -> None:
        while self._asking and self._asking[0][0] <= done:
            self._asking.popleft()[1].set_result(is_kept)

    @property
    def _is_enough(self) -> bool:
        return 0 < self._batching.max_size <= len(self._waiting)

    def _batch(self) -> list[bytes]:
        batch: list[bytes] = []
        length, longest, most = 0, self._batching.max_bytes, self._batching.max_size
        while self._waiting and not 0 < most <= len(batch):
            length += len(self._waiting[0])
            if longest and batch and length > longest:
                break
            batch.append(self._waiting.popleft())
        self._waiting_bytes -= sum(map(len, batch)) + len(batch)
        self._room.set()
        if not self._closed.is_set():
            if not self._waiting:
                self._news.clear()
            if not self._is_enough and not (self._asking and self._waiting):
                self._enough.clear()
        return batch

    async def _deliver(self, batch: list[bytes]) -> str:
        """Why a batch is lost; empty when it is not."""
        raise NotImplementedError

    def _left(self, events: list[bytes]) -> None:
        """What nothing can be waited for any more."""

    def _lose(self, events: int, why: str) -> None:
        self.lost += events
        if not self.fault:
            log.error("%s: %s", self.COMPLAINT, why)
        self.fault = why
