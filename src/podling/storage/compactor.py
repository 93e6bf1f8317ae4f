"""Compacts the log at intervals, so that it does not grow without end.

A revision can be read for one INTERVAL after it was superseded, and no longer than two, as in Kubernetes. The
log holds at most two windows of revisions.
"""

from __future__ import annotations

import asyncio
import logging

from podling.storage.interface import Storage, StorageClosedError

WINDOW = 10_000
INTERVAL = 300.0
"""Seconds; `--etcd-compaction-interval` of kube-apiserver."""

_log = logging.getLogger(__name__)


async def compact_forever(storage: Storage, window: int = WINDOW) -> None:
    """At each INTERVAL, compact up to the revision of the INTERVAL before, and keep at most two windows. Runs
    until cancelled."""
    overdue = asyncio.Event()
    compacted = 0

    def look(revision: int) -> None:
        if revision - compacted >= 2 * window:
            overdue.set()

    end = storage.watch("", lambda revision, _: look(revision))
    at_last_interval, next_interval = storage.revision, asyncio.get_running_loop().time() + INTERVAL
    try:
        while True:
            look(storage.revision)
            try:
                async with asyncio.timeout_at(next_interval):
                    await overdue.wait()
                compacted = storage.revision - window
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
