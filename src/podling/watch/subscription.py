"""One watcher: the frames it has yet to be sent, and the end of the watch when the client reads too slowly.

    backlog (made as it is read) ─▶ queue (at most QUEUE_BYTES) ─▶ batches of about BATCH_BYTES

A full queue ends the watch: the client resumes from the window, or lists again. Nobody waits for a slow
reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from podling.watch.entry import Change, Frames, Match, SharedFrames, select

QUEUE_BYTES = 16 * 1024 * 1024
"""The queue is bounded in bytes because memory is what runs out. Frames are shared: many stalled watchers
cost no more than one.
"""

BATCH_BYTES = 256 * 1024


class Subscription:
    """Iterate it, in one task, for bytes to send, always whole frames. Close it when done."""

    def __init__(
        self,
        backlog: Iterator[bytes],
        since: int,
        match: Match | None,
        frames: Frames,
        bookmarks: bool,
        on_end: Callable[[Subscription], Any],
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        """`since` may lie in the future: until then nothing is sent."""
        self._backlog = backlog
        self._since = since
        self._match = match
        self._frames = frames
        self._bookmarks = bookmarks
        self._on_end = on_end
        self._queue_bytes = queue_bytes
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self.overflowed = False
        self.sent = 0
        """Events handed to the reader so far."""

    def offer(self, changes: Sequence[Change], shared: SharedFrames) -> None:
        for change in changes:
            if change.revision <= self._since:
                continue
            if seen := select(change, self._match):
                self._push(shared.event(self._frames, seen))

    def bookmark(self, revision: int) -> None:
        """Tell the watcher, if it takes bookmarks, that it has every event up to `revision`."""
        if self._bookmarks and revision >= self._since:
            self._push(self._frames.bookmark(revision))

    def close(self) -> None:
        """Nothing more is sent; the iteration ends."""
        if self._ended:
            return
        self._ended = True
        self._backlog = iter(())
        self._queue.clear()
        self._wake()
        self._on_end(self)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> bytes:
        while not (batch := self._take()):
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return batch

    def _push(self, frame: bytes) -> None:
        if self._ended:
            return
        if self._queued + len(frame) > self._queue_bytes and self._queue:
            self.overflowed = True
            self.close()
            return
        self._queue.append(frame)
        self._queued += len(frame)
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self) -> bytes:
        batch: list[bytes] = []
        size = 0
        for frame in self._backlog:
            batch.append(frame)
            size += len(frame)
            if size >= BATCH_BYTES:
                break
        while self._queue and size < BATCH_BYTES:
            frame = self._queue.popleft()
            self._queued -= len(frame)
            batch.append(frame)
            size += len(frame)
        self.sent += len(batch)
        return b"".join(batch)
