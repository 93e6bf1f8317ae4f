"""Deletes Events an hour after they were last written, as kube-apiserver's `--event-ttl` does.

An etcd does so itself, by leases, so that it makes no difference which server wrote an Event. What is left to
do here are those that came there without a lease: the ones that `podling migrate-storage` copied.

All Events live equally long, so they expire in the order in which they were written: one queue and one timer
suffice, and nothing is searched. The queue is kept up to date by a watch of the cache. Watchers see the
expiry as an ordinary deletion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from podling.apiserver.kinds.events import Events
from podling.apiserver.kinds.kind import storage_key
from podling.model.codec import json
from podling.model.scheme import resource_of
from podling.model.time import Clock, parse_time
from podling.model.types.core import Event
from podling.storage import interface
from podling.storage.interface import ConflictError, Storage, StorageClosedError

LIFETIME = timedelta(seconds=Events.ttl)
LEASED = LIFETIME + timedelta(minutes=2)
"""After which an Event has no lease: one lasts a minute longer, and etcd ends it within seconds."""
LONG_AGO = datetime.fromtimestamp(0, UTC)
PAUSE = 60.0
"""Seconds until a deletion that the store refused is tried again."""

log = logging.getLogger(__name__)


class Written(NamedTuple):
    key: str
    revision: int
    at: datetime


class Expiry:
    """The stored events, the one that expires first at the front."""

    def __init__(self, lifetime: timedelta) -> None:
        self._lifetime = lifetime
        self._written: dict[str, Written] = {}

    def note(self, written: Written) -> None:
        """Record that the event of this key was written now, which makes it the last to expire."""
        self._written.pop(written.key, None)
        self._written[written.key] = written

    def forget(self, key: str) -> None:
        self._written.pop(key, None)

    def oldest(self) -> Written | None:
        return next(iter(self._written.values()), None)

    def wait(self, now: datetime) -> float | None:
        """Seconds until the oldest event expires, 0 or less if it has; None if there is no event."""
        oldest = self.oldest()
        return None if oldest is None else (oldest.at + self._lifetime - now).total_seconds()


async def expire_events(storage: Storage, clock: Clock, lifetime: timedelta | None = None) -> None:
    """Delete expired events until cancelled."""
    prefix = storage_key(resource_of(Event))
    if lifetime is None:
        lifetime = LEASED if storage.is_shared else LIFETIME
    expiry, news = Expiry(lifetime), asyncio.Event()

    def hear(_: int, events: Sequence[interface.Event]) -> None:
        now = clock.now()
        for event in events:
            if event.value is None:
                expiry.forget(event.key)
            else:
                expiry.note(Written(event.key, event.revision, now))
        news.set()

    # The events written before this server started are ordered by the times in them.
    standing, now = [], clock.now()
    for record in (await storage.list(prefix)).records:
        at = last_time(json.decoder_of(Event).decode(record.value))
        standing.append(Written(record.key, record.revision, min(at, now)))
    for written in sorted(standing, key=lambda one: one.at):
        expiry.note(written)
    end = storage.watch(prefix, hear)
    try:
        while True:
            wait = expiry.wait(clock.now())
            if wait is not None and wait <= 0:
                await _delete_oldest(storage, expiry)
                continue
            # New events expire later, so only a first one must wake this.
            news.clear()
            if wait is None:
                await news.wait()
            else:
                await asyncio.sleep(wait)
    finally:
        end()


async def _delete_oldest(storage: Storage, expiry: Expiry) -> None:
    oldest = expiry.oldest()
    if oldest is None:
        return
    try:
        await storage.delete(oldest.key, oldest.revision)
    except ConflictError:
        # Written or deleted meanwhile, by another server perhaps: the store tells of that, too.
        expiry.forget(oldest.key)
    except StorageClosedError as error:
        log.warning("events could not be expired: %s", error)
        await asyncio.sleep(PAUSE)


def last_time(event: Event) -> datetime:
    """When the event last happened, by its fields; the distant past if it has none."""
    series = event.series.last_observed_time if event.series else ""
    told = (event.metadata.creation_timestamp, event.last_timestamp, event.event_time, series)
    return max(map(parse_time, filter(None, told)), default=LONG_AGO)
