"""Who waits for a log to grow: one inotify for all followers, as a user may have few (128 on most
machines).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asyncinotify import Event, Inotify, Mask, Watch

_MASK = Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.CLOSE_WRITE | Mask.ONLYDIR


class LogChanges:
    """What has happened to one log: `changed` is set by anything in its directory, `closed` when a writer has
    closed it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = asyncio.Event()
        self.closed = asyncio.Event()

    def tell(self, mask: Mask, name: str) -> None:
        if mask & Mask.CLOSE_WRITE and name == self.name:
            self.closed.set()
        self.changed.set()


class LogDirectories:
    """`run` must be running for followers to be woken."""

    def __init__(self) -> None:
        self._inotify = Inotify()
        self._followers: dict[Path, set[LogChanges]] = defaultdict(set)
        self._watches: dict[Path, Watch] = {}

    async def run(self) -> None:
        """Never ends by itself."""
        with self._inotify:
            async for event in self._inotify:
                self._tell(event)

    @contextmanager
    def changes(self, log: Path) -> Iterator[LogChanges]:
        """Raises OSError when there is no such directory."""
        directory, changes = log.parent, LogChanges(log.name)
        if directory not in self._watches:
            self._watches[directory] = self._inotify.add_watch(directory, _MASK)
        self._followers[directory].add(changes)
        try:
            yield changes
        finally:
            self._forget(directory, changes)

    def _forget(self, directory: Path, changes: LogChanges) -> None:
        followers = self._followers[directory]
        followers.discard(changes)
        if followers:
            return
        del self._followers[directory]
        watch = self._watches.pop(directory, None)
        if watch is not None:
            self._inotify.rm_watch(watch)

    def _tell(self, event: Event) -> None:
        """An event of no watch says that events were lost: everyone looks."""
        watch = event.watch
        if watch is None:
            told = [changes for followers in self._followers.values() for changes in followers]
        else:
            told = list(self._followers.get(watch.path, ()))
            if event.mask & Mask.IGNORED and self._watches.get(watch.path) is watch:
                del self._watches[watch.path]
        for changes in told:
            changes.tell(event.mask, event.name.name if event.name else "")
