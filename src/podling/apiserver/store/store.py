"""Reads and writes the objects of one kind: the kind's rules on top of the storage.

Reads come from the watch cache and decode nothing. A write is decided on the current object and stored on the
condition that its revision has not changed. Writers of one object within this server take turns; if another
server's write came first, the decision is made again on the new state. An update that changes nothing is not
written: the answer is the current object at its current revision, as in Kubernetes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from podling.apiserver.apply.apply import Track, by_update, unchanged
from podling.apiserver.apply.managed_fields import Writer
from podling.apiserver.kinds.kind import Kind, Part, kept_as, storage_key
from podling.apiserver.store import object_meta
from podling.model.codec import json
from podling.model.codec.json import with_nulls
from podling.model.errors import STALE, Cause, StatusError, already_exists, conflict, invalid, not_found
from podling.model.scheme import Resource, resource_of
from podling.model.time import Clock
from podling.model.types.meta import DeleteOptions, KubeObject
from podling.process.waits import apart, aside
from podling.storage.interface import ConflictError, KeyExistsError, Record, Storage, Write
from podling.watch.cache import Cache
from podling.watch.entry import Decoder, Entry

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")

OBJECT_LIMIT = 1_572_864
"""Bytes of an encoded object: etcd's default limit."""
ATTEMPTS = 5
"""How often a write is decided again after another server's write, before it fails with 409."""


SERVER = "kube-apiserver"
"""The manager of fields that the server itself writes."""

UNRULED: Part[Any] = Part()
"""No rules: for changes that the server itself decides, such as a binding."""

MUST_NAME_VERSION = Cause(
    "FieldValueInvalid", "Invalid value: 0: must be specified for an update", "metadata.resourceVersion"
)

Change = Callable[[Entry], T]
"""From the current entry to the wanted object. Called again after a conflict; must return a fresh object each
time."""


class Deleted(NamedTuple):
    """The object after a deletion. `gone`: removed; otherwise it is marked, and waits for finalizers or its
    grace period."""

    entry: Entry
    gone: bool


class Rules(Protocol):
    """The rules of an update: those of the kind, or those of a subresource."""

    def prepare_update(self, new: Any, old: Any) -> None: ...

    def validate_update(self, new: Any, old: Any) -> list[Cause]: ...


class Admission(Protocol):
    """Admission of one request. `new` is None for a deletion. Raises StatusError."""

    async def admit(self, new: Any, old: Any) -> None:
        """Called before `new` is validated; may change it."""

    async def validate(self, new: Any, old: Any) -> None:
        """Called once `new` is valid; may charge it to limited resources, such as quotas."""


class Store(Generic[T]):
    def __init__(
        self, kind: Kind[T], storage: Storage, cache: Cache, clock: Clock, named: Resource | None = None
    ) -> None:
        """`named`: the resource that is told of an object that is missing or in conflict; the kind's own if
        None."""
        self.kind = kind
        self.cache = cache
        self.type = cast(type[T], kind.resource.type)
        self.storage = storage
        self._named = named or kind.resource
        self.clock = clock
        self._decoder = Decoder(partial(json.decode, type_=self.type))
        self._prefix = storage_key(kept_as(kind))
        # Writers of one object take turns: deciding at once, all but one would decide in vain.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def prefix(self, namespace: str = "") -> str:
        """The prefix of the keys of all objects, or of those in one namespace."""
        return f"{self._prefix}{namespace}/" if namespace else self._prefix

    def has(self, namespace: str, name: str) -> bool:
        return self.cache.get(self.prefix(namespace) + name) is not None

    def find(self, namespace: str, name: str) -> Entry:
        """Raises StatusError 404."""
        entry = self.cache.get(self.prefix(namespace) + name)
        if entry is None:
            raise self._not_found(name)
        return entry

    def copy(self, entry: Entry) -> T:
        """A copy of the object of an entry, which the caller may change."""
        return json.decode(entry.data, self.type)

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
        """Store a new object. `size`: bytes of the body; a large one is validated in a thread. Raises
        StatusError: 409 if the name is taken, 422 for validation faults."""
        kind, now = self.kind, self.clock.now()
        object_meta.begin(obj, namespace, now, has_generation=kind.has_generation)
        for name in object_meta.names(obj.metadata, extends=kind.extends_names):
            obj.metadata.name = name
            await aside(size, self._begin, obj, track, now)
            await admission.admit(obj, None)
            self._refuse_if(await self._judged(size, kind.validate_create, obj), obj)
            await admission.validate(obj, None)
            key, data = self.prefix(namespace) + name, self._encoded(obj)
            # Of a name that is taken only a generated one has another to try.
            if dry_run:
                if await self.storage.get(key) is None:
                    return Entry(key, 0, data, self._decoder)
                continue
            try:
                revision = await self._commit(Write(key, self._to_store(data), None), obj, None)
            except KeyExistsError as error:
                if error.record.key == key:
                    continue
                raise self._kept_by_another(obj, error) from error
            return self._written(key, data, revision, obj)
        standing = self.cache.get(key)
        goes = standing is not None and standing.object.metadata.deletion_timestamp != ""
        raise already_exists(self._named.plural, obj.metadata.name, self._named.group, goes=goes)

    async def _judged(self, size: int, judge: Callable[..., list[Cause]], *args: Any) -> list[Cause]:
        return await (apart(judge, *args) if self.kind.validates_long else aside(size, judge, *args))

    def _begin(self, obj: T, track: Track, now: datetime) -> None:
        self.kind.default(obj)
        obj.metadata.managed_fields = track(obj, None)
        self.kind.prepare_create(obj, now)

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
        """Store the object that `change` makes of the current one. `size`: bytes of the body. Raises
        StatusError 404 if there is no object, 409 after ATTEMPTS conflicts, 422 for validation faults."""

        async def write(current: Entry) -> Entry:
            longer = max(size, len(current.value))
            new = await aside(longer, change, current)
            await aside(longer, self._settle, new, current, rules, track)
            await admission.admit(new, current.object)
            self._refuse_if(await self._judged(longer, self._faults, new, current, rules), new)
            await admission.validate(new, current.object)
            return await self._replace(new, current, dry_run=dry_run)

        return await self._write(namespace, name, write)

    async def delete(
        self,
        namespace: str,
        name: str,
        options: DeleteOptions,
        admission: Admission,
        *,
        mark: Callable[[T], None] | None = None,
        dry_run: bool = False,
    ) -> Deleted:
        """Delete an object, or mark it as deleted if something still holds it. `mark` changes the object that
        stays. Raises StatusError 404, 409 for a precondition that does not hold."""

        async def write(current: Entry) -> Deleted:
            object_meta.check_preconditions(
                self.kind.resource,
                options.preconditions,
                current.object.metadata,
                current.revision,
                briefly=self.kind.own_deletion,
            )
            await admission.admit(None, current.object)
            await admission.validate(None, current.object)
            marked, now = self.copy(current), self.clock.now()
            if mark is not None:
                mark(marked)
            object_meta.propagate(marked.metadata, options, orphans=self.kind.orphans)
            stays = self.kind.graceful_delete(marked, options, now)
            held = bool(marked.metadata.finalizers)
            if held and not stays:
                object_meta.mark_deleted(marked.metadata, now)
            begins = object_meta.begins_to_go(current.object.metadata, marked.metadata)
            if begins and not self.kind.own_deletion:
                marked.metadata.generation = current.object.metadata.generation + 1
            if stays or held:
                return Deleted(await self._replace(marked, current, dry_run=dry_run), gone=False)
            removed = await self._remove(current, dry_run=dry_run)
            # The answer has the marks of a deletion in no time, which nothing stored ever had.
            marked.metadata.resource_version = ""
            gone = Entry(removed.key, removed.revision, self._encoded(marked), self._decoder)
            return Deleted(gone, gone=True)

        return await self._write(namespace, name, write)

    async def _write(self, namespace: str, name: str, write: Callable[[Entry], Awaitable[R]]) -> R:
        """Call `write` with the current entry, and again if another server's write came first."""
        key = self.prefix(namespace) + name
        async with self._turns.setdefault(key, asyncio.Lock()):
            current = self.find(namespace, name)
            for _ in range(ATTEMPTS):
                try:
                    return await write(current)
                except ConflictError as error:
                    if error.key != key:
                        continue
                    if (first := error.record) is None:
                        raise self._not_found(name) from error
                    current = Entry(first.key, first.revision, first.value, self._decoder)
        raise conflict(self._named.plural, name, STALE, self._named.group)

    def _settle(self, new: T, current: Entry, rules: Rules | None, track: Track) -> None:
        kind, old = self.kind, current.object
        object_meta.place(new.metadata, old.metadata.namespace)
        if not new.metadata.resource_version and not kind.updates_unconditionally:
            # Of the resource, and not of the kind, as in Kubernetes.
            resource = kind.resource
            raise invalid(resource.plural, new.metadata.name, [MUST_NAME_VERSION], resource.group)
        object_meta.check_writer(self._named, new.metadata, old.metadata, current.revision)
        object_meta.carry_over(new, old)
        kind.default(new)
        # Told of what was asked for, as in Kubernetes, also where the rules put something back.
        entries = track(new, current)
        (rules or kind).prepare_update(new, old)
        new.metadata.managed_fields = entries
        # A binding is no change of what is wanted: a pod that runs unchanged is of generation 1.
        counts = kind.has_generation and rules is not UNRULED
        if counts and object_meta.differs_in_spec(new, old):
            new.metadata.generation = old.metadata.generation + 1

    def _faults(self, new: T, current: Entry, rules: Rules | None) -> list[Cause]:
        faults = self.kind.validate_changed(new, current.object) if rules is None else []
        return faults + (rules or self.kind).validate_update(new, current.object)

    def _encoded(self, obj: T) -> bytes:
        return with_nulls(json.encode(obj), self.type)

    def _to_store(self, data: bytes) -> bytes:
        """The bytes to store. Raises StatusError 500, in Kubernetes' words, for an object that is too large
        for etcd."""
        if len(data) > OBJECT_LIMIT:
            raise StatusError(500, "", "etcdserver: request is too large")
        return data

    async def _replace(self, new: T, current: Entry, *, dry_run: bool) -> Entry:
        """Raises ConflictError."""
        if current.object.metadata.deletion_timestamp and self.kind.may_vanish(new, current.object):
            await self._remove(current, dry_run=dry_run)
            # The answer has the last change, of a version at which it never was stored.
            new.metadata.resource_version = ""
            return Entry(current.key, current.revision, self._encoded(new), self._decoder)
        new.metadata.resource_version = ""
        data = self._encoded(new)
        if data == current.value:
            return current
        if dry_run:
            return Entry(current.key, current.revision, data, self._decoder)
        write = Write(current.key, self._to_store(data), current.revision)
        try:
            revision = await self._commit(write, new, current.object)
        except KeyExistsError as error:
            raise self._kept_by_another(new, error) from error
        return self._written(current.key, data, revision, new)

    async def _remove(self, current: Entry, *, dry_run: bool) -> Entry:
        """Raises ConflictError."""
        if dry_run:
            return current
        write = Write(current.key, None, current.revision)
        revision = await self._commit(write, None, current.object)
        return Entry(current.key, revision, current.value, self._decoder)

    async def _commit(self, write: Write, new: T | None, old: T | None) -> int:
        """Make the write, and with it those of the objects kept with `new` and no more with `old`. Raises
        KeyExistsError, ConflictError, also for one of these."""
        kept = self.kind.kept
        if kept is None:
            return await self.storage.commit([write])
        wanted, standing = ({_key(one): one for one in kept.of(obj)} if obj else {} for obj in (new, old))
        now = self.clock.now()
        writes = [_beginning(key, one, now) for key, one in wanted.items() if key not in standing]
        for key, one in standing.items():
            # Somebody may have deleted it.
            if key not in wanted and (record := await self.storage.get(key)) is not None:
                writes.append(_ending(record, type(one), now))
        return await self.storage.commit([*writes, write])

    async def complete(self) -> None:
        """Write what is kept with objects and missing: a podling of before has not written it."""
        kept, now = self.kind.kept, self.clock.now()
        if kept is None:
            return
        missing = [
            self.storage.commit([_beginning(key, one, now)])
            for entry in self.cache.select(self.prefix()).entries
            for one in kept.of(entry.object)
            if await self.storage.get(key := _key(one)) is None
        ]
        await asyncio.gather(*missing)

    def _written(self, key: str, data: bytes, revision: int, obj: T) -> Entry:
        """The entry that was written; from the cache if it has it, unless that is newer already."""
        entry = self.cache.get(key)
        if entry is None or entry.revision != revision:
            entry = Entry(key, revision, data, self._decoder)
        obj.metadata.resource_version = str(revision)
        entry.know_object(obj)
        return entry

    def _refuse_if(self, faults: Sequence[Cause], obj: T) -> None:
        if faults:
            resource = kept_as(self.kind)
            raise invalid(resource.kind, obj.metadata.name, faults, resource.group)

    def _kept_by_another(self, obj: T, error: KeyExistsError) -> StatusError:
        if self.kind.kept is None:
            raise error
        return self.kind.kept.taken(obj, error.record.key.rpartition("/")[2])

    def _not_found(self, name: str) -> StatusError:
        return not_found(self._named.plural, name, self._named.group)


def _key(obj: KubeObject) -> str:
    return storage_key(resource_of(type(obj)), obj.metadata.namespace, obj.metadata.name)


def _beginning(key: str, obj: KubeObject, now: datetime) -> Write:
    """The creation of an object by the server itself."""
    object_meta.begin(obj, obj.metadata.namespace, now, has_generation=False)
    track = by_update(Writer(SERVER, obj.API_VERSION, ""), unwritten={}, now=now, versions={})
    obj.metadata.managed_fields = track(obj, None)
    return Write(key, with_nulls(json.encode(obj), type(obj)), None)


def _ending(record: Record, type_: type[KubeObject], now: datetime) -> Write:
    """The deletion of an object, or the mark of it if finalizers hold the object."""
    obj = json.decode(record.value, type_)
    if not obj.metadata.finalizers:
        return Write(record.key, None, record.revision)
    object_meta.mark_deleted(obj.metadata, now)
    return Write(record.key, with_nulls(json.encode(obj), type_), record.revision)


class Stores:
    """All stores of the server by type, as admission and reviews look at them. Implements
    `podling.apiserver.admission.plugin.Objects`."""

    def __init__(self, stores: Sequence[Store[Any]]) -> None:
        self._by_type = {store.type: store for store in stores}

    async def complete(self) -> None:
        """Write what is missing of the objects that are kept with others."""
        for store in self._by_type.values():
            await store.complete()

    def find(self, type: type[T], namespace: str, name: str) -> T | None:
        store = self._by_type[type]
        entry = store.cache.get(store.prefix(namespace) + name)
        return cast(T, entry.object) if entry is not None else None

    def get(self, type: type[T], namespace: str, name: str) -> T:
        """Raises StatusError 404."""
        return cast(T, self._by_type[type].find(namespace, name).object)

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        store = self._by_type[type]
        for entry in store.cache.select(store.prefix(namespace)).entries:
            yield cast(T, entry.object)

    async def change(
        self, type: type[T], namespace: str, name: str, change: Callable[[T], None], *, dry_run: bool
    ) -> None:
        store = self._by_type[type]

        def changed(standing: Entry) -> Any:
            copy = store.copy(standing)
            change(copy)
            return copy

        await store.update(namespace, name, changed, _Unasked(), rules=UNRULED, dry_run=dry_run)


class _Unasked:
    """Admission for writes of admission plugins, which are not admitted again."""

    async def admit(self, new: Any, old: Any) -> None: ...

    async def validate(self, new: Any, old: Any) -> None: ...
