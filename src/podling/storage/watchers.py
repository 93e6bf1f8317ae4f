"""The watchers of a store and the order they are called in, for every back end.

A watcher is called for every group of writes, also when none is under its prefix, so that its cache knows it
is current.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from podling.storage.interface import Event, Watcher

_log = logging.getLogger(__name__)


class Watchers:
    """The watchers of one store, called in the order they came."""

    def __init__(self) -> None:
        self._watchers: dict[object, tuple[str, Watcher]] = {}

    def add(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        ticket = object()
        self._watchers[ticket] = (prefix, watcher)

        def end() -> None:
            self._watchers.pop(ticket, None)

        return end

    def publish(self, revision: int, events: Sequence[Event]) -> None:
        """Call every watcher. A watcher may end its own watch or others'; one that was ended is not called
        any more."""
        # A group is mostly one write, and of no interest to most watchers: this is every write's way.
        only = events[0].key if len(events) == 1 else None
        for ticket, (prefix, watcher) in tuple(self._watchers.items()):
            if ticket not in self._watchers:
                continue
            near: Sequence[Event]
            if only is None:
                near = [event for event in events if event.key.startswith(prefix)]
            else:
                near = events if only.startswith(prefix) else []
            try:
                watcher(revision, near)
            except Exception:
                # One broken watcher must not keep the others from news, nor a writer from its answer.
                _log.exception("a watcher of %s failed at revision %d", prefix, revision)
