"""The store of a View, another version of a stored kind, such as autoscaling/v1 of autoscaling/v2.

There is one stored object, and one cache of it. What is read is converted on the way out: entries, lists and
the frames of watches. What is written is converted on the way in, and written through the store of the stored
kind, whose rules and admission see what is to be stored. The record of field managers is that of the version
that was written through. A View costs nothing while nobody asks for it.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Generic, TypeVar

from podling.apiserver.apply.apply import Track, unchanged
from podling.apiserver.kinds.kind import View
from podling.apiserver.store.store import Admission, Change, Deleted, Rules, Store
from podling.model.codec import json
from podling.model.codec.json import with_nulls
from podling.model.types.meta import DeleteOptions, KubeObject, ManagedFieldsEntry
from podling.process.waits import aside
from podling.watch.audience import Only
from podling.watch.cache import Cache, Selection
from podling.watch.entry import Decoder, Entry, Frames, JsonFrames, Match, SelectedEvent
from podling.watch.subscription import Subscription

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S", bound=KubeObject)


class ViewEntry(Entry):
    """An object in another version than it is stored in."""

    __slots__ = ("_origin",)

    def __init__(self, origin: Entry, value: bytes, decoder: Decoder) -> None:
        super().__init__(origin.key, origin.revision, value, decoder)
        self._origin = origin

    @property
    def origin(self) -> Entry:
        return self._origin


class ViewFrames:
    """The frames of a watch, of converted objects. Implements `podling.watch.entry.Frames`."""

    def __init__(self, frames: Frames, cache: ViewCache) -> None:
        self._frames = frames
        self._cache = cache

    def event(self, event: SelectedEvent) -> bytes:
        return self._frames.event(event._replace(entry=self._cache.seen(event.entry)))

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        return self._frames.bookmark(revision, initial_events_end=initial_events_end)


class ViewCache:
    """The cache of the stored kind, as the view shows it. Implements `podling.watch.cache.Cache`."""

    def __init__(self, cache: Cache, view: View[Any, Any], decoder: Decoder) -> None:
        self._cache = cache
        self._view = view
        self._decoder = decoder
        resource = view.resource
        # One for all watchers, so that a frame is made once.
        self._frames = ViewFrames(JsonFrames(resource.kind, resource.api_version), self)

    @property
    def revision(self) -> int:
        return self._cache.revision

    @property
    def changes(self) -> int:
        return self._cache.changes

    async def reached(self, revision: int) -> None:
        await self._cache.reached(revision)

    def get(self, key: str) -> Entry | None:
        entry = self._cache.get(key)
        return None if entry is None else self.seen(entry)

    def select(
        self,
        prefix: str,
        start: str = "",
        limit: int = 0,
        revision: int | None = None,
    ) -> Selection:
        found = self._cache.select(prefix, start, limit, revision)
        return found._replace(entries=[self.seen(entry) for entry in found.entries])

    def watch(
        self,
        prefix: str,
        revision: int | None = None,
        match: Match | None = None,
        bookmarks: bool = False,
        initial: bool | None = None,
        frames: Frames | None = None,
        only: Only | None = None,
    ) -> Subscription:
        # `only` reads an object as the view shows it, which the cache has not.
        shown = self._frames if frames is None else ViewFrames(frames, self)
        seen = None if match is None else lambda entry: match(self.seen(entry))
        return self._cache.watch(prefix, revision, seen, bookmarks, initial, shown)

    def seen(self, entry: Entry) -> Entry:
        shown = self._view.from_stored(entry.object)
        if entry.revision:
            shown.metadata = copy(shown.metadata)
            shown.metadata.resource_version = ""
        value = with_nulls(json.encode(shown), self._view.resource.type)
        return ViewEntry(entry, value, self._decoder)


class ViewStore(Store[T], Generic[T, S]):
    def __init__(self, view: View[T, S], stored: Store[S]) -> None:
        super().__init__(view, stored.storage, stored.written_cache, stored.clock)
        self._view = view
        self._stored = stored
        self._seen = ViewCache(stored.cache, view, self._decoder)
        self.cache = self._seen

    async def create(
        self,
        obj: T,
        namespace: str,
        admission: Admission,
        *,
        track: Track = unchanged,
        dry_run: bool = False,
        size: int = 0,
    ) -> Entry:
        wanted = await aside(size, self._to_stored, obj)
        entry = await self._stored.create(
            wanted, namespace, admission, track=self._tracked(track), dry_run=dry_run, size=size
        )
        return self._seen.seen(entry)

    async def update(
        self,
        namespace: str,
        name: str,
        change: Change[T],
        admission: Admission,
        *,
        rules: Rules | None = None,
        track: Track = unchanged,
        dry_run: bool = False,
        size: int = 0,
    ) -> Entry:
        entry = await self._stored.update(
            namespace,
            name,
            lambda current: self._to_stored(change(self._seen.seen(current))),
            admission,
            rules=rules,
            track=self._tracked(track),
            dry_run=dry_run,
            size=size,
        )
        return self._seen.seen(entry)

    async def delete(
        self,
        namespace: str,
        name: str,
        options: DeleteOptions,
        admission: Admission,
        *,
        mark: Any = None,
        dry_run: bool = False,
    ) -> Deleted:
        deleted = await self._stored.delete(namespace, name, options, admission, mark=mark, dry_run=dry_run)
        return deleted._replace(entry=self._seen.seen(deleted.entry))

    def _to_stored(self, obj: T) -> S:
        self._view.default(obj)
        return self._view.to_stored(obj)

    def _tracked(self, track: Track) -> Track:
        def tracked(new: S, current: Entry | None) -> list[ManagedFieldsEntry]:
            return track(self._view.from_stored(new), current and self._seen.seen(current))

        return tracked
