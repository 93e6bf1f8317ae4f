"""Compacts the log at intervals, so that it does not grow without end.

A revision can be read for one INTERVAL after it was superseded, and no longer than two, as in Kubernetes. The
log holds at most two windows of revisions, and of what was written at most twice WINDOW_BYTES.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from podling.storage.interface import Event, Storage, StorageClosedError

WINDOW = 10_000
WINDOW_BYTES = 256 << 20
INTERVAL = 300.0
"""Seconds; `--etcd-compaction-interval` of kube-apiserver."""

_log = logging.getLogger(__name__)


class Past:
    """How far back the log may go: at most two windows of revisions, and two of bytes."""

    def __init__(self, window: int, window_bytes: int) -> None:
        self._window = window
        self._window_bytes = window_bytes
        self._written = 0
        self._begins = 0
        """The revision at which the newest window of bytes begins."""
        self.due = 0
        """What may be compacted now; it only grows."""

    def note(self, revision: int, events: Sequence[Event]) -> None:
        """A group of writes was published."""
        if revision - self.due >= 2 * self._window:
            self.due = revision - self._window
        self._written += sum(len(event.value) for event in events if event.value is not None)
        if self._written >= self._window_bytes:
            self.due = max(self.due, self._begins)
            self._written, self._begins = 0, revision


async def compact_forever(storage: Storage, window: int = WINDOW, window_bytes: int = WINDOW_BYTES) -> None:
    """At each INTERVAL, compact up to the revision of the INTERVAL before, and keep at most two windows. Runs
    until cancelled."""
    overdue = asyncio.Event()
    past = Past(window, window_bytes)
    compacted = 0

    def hear(revision: int, events: Sequence[Event]) -> None:
        past.note(revision, events)
        if past.due > compacted:
            overdue.set()

    end = storage.watch("", hear)
    at_last_interval, next_interval = storage.revision, asyncio.get_running_loop().time() + INTERVAL
    try:
        while True:
            hear(storage.revision, ())
            try:
                async with asyncio.timeout_at(next_interval):
                    await overdue.wait()
                compacted = past.due
            except TimeoutError:
                compacted = max(compacted, at_last_interval)
                at_last_interval, next_interval = storage.revision, next_interval + INTERVAL
            overdue.clear()
            try:
                await storage.compact(compacted)
            except StorageClosedError as error:
                # A full disk passes: the next window or interval tries again.
                _log.warning("history could not be compacted: %s", error)
    finally:
        end()
