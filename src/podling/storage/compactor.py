"""Keeps the log from growing without end: the history watches may resume in is a window of revisions."""

from __future__ import annotations

import asyncio
import logging

from podling.storage.interface import Storage, StorageClosedError

WINDOW = 10_000

_log = logging.getLogger(__name__)


async def compact_forever(storage: Storage, window: int = WINDOW) -> None:
    """Keep between one and two windows of history; runs until cancelled."""
    overdue = asyncio.Event()
    compacted = 0

    def look(revision: int) -> None:
        if revision - compacted >= 2 * window:
            overdue.set()

    end = storage.watch("", lambda revision, _: look(revision))
    try:
        while True:
            look(storage.revision)
            await overdue.wait()
            overdue.clear()
            compacted = storage.revision - window
            try:
                await storage.compact(compacted)
            except StorageClosedError as error:
                # A full disk passes: the next window tries again.
                _log.warning("history could not be compacted: %s", error)
    finally:
        end()
