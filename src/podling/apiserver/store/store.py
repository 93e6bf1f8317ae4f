"""Reads and writes the objects of one kind: the kind's rules on top of the storage.

Reads come from the watch cache and decode nothing. A write is decided on the current object and stored on the
condition that its revision has not changed. Writers of one object within this server take turns; if another
server's write came first, the decision is made again on the new state. An update that changes nothing is not
written, unless the storage would keep it in another form by now: the answer is the current object at its
current revision, as in Kubernetes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from podling.apiserver.apply.apply import Track, by_update, unchanged
from podling.apiserver.apply.managed_fields import Writer
from podling.apiserver.kinds.kind import Kind, Part, kept_as, storage_key
from podling.apiserver.rules import metadata
from podling.apiserver.store import object_meta
from podling.apiserver.store.kept import SERVER, KeptWith, by_server
from podling.model.codec import json, pieces
from podling.model.codec.json import with_nulls
from podling.model.errors import STALE, Cause, StatusError, already_exists, conflict, invalid, not_found
from podling.model.scheme import Resource
from podling.model.time import Clock
from podling.model.types.meta import DeleteOptions, KubeObject, ObjectMeta
from podling.model.types.service import Service
from podling.process.waits import apart, aside, giving_way, is_aside
from podling.storage.interface import ConflictError, KeyExistsError, Storage, Write
from podling.watch.cache import Cache, ToldCache
from podling.watch.entry import Decoder, Entry

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")

OBJECT_LIMIT = 1_572_864
"""Bytes of an encoded object: etcd's default limit."""
ATTEMPTS = 100
"""How often a write is decided again after another server's write, before it fails with 409. Kubernetes does
so until the request times out."""


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

    standard_finalizers: ClassVar[bool]

    def prepare_update(self, new: Any, old: Any) -> None: ...

    def validate_update(self, new: Any, old: Any) -> list[Cause]: ...


class Admission(Protocol):
    """Admission of one request. `new` is None for a deletion. Raises StatusError."""

    @property
    def waits(self) -> bool:
        """Whether it may take long: then other writes of the object do not wait for this one."""
        ...

    async def admit(self, new: Any, old: Any) -> None:
        """Called with `new` as it was sent, with defaults; may change it."""

    async def settle(self, new: Any, old: Any) -> None:
        """Called once `new` is prepared to be stored; may change it."""

    async def validate(self, new: Any, old: Any) -> None:
        """Called once `new` is valid; may charge it to limited resources, such as quotas."""


class Store(Generic[T]):
    def __init__(
        self, kind: Kind[T], storage: Storage, cache: ToldCache, clock: Clock, named: Resource | None = None
    ) -> None:
        """`named`: the resource that is told of an object that is missing or in conflict; the kind's own if
        None."""
        self.kind = kind
        self.cache: Cache = cache
        self.written_cache = cache
        self.type = cast(type[T], kind.resource.type)
        self.storage = storage
        self._named = named or kind.resource
        self.clock = clock
        self.kept = KeptWith(kind.kept, storage, clock) if kind.kept else None
        self._decoder = Decoder(partial(json.decode, type_=self.type))
        self._prefix = storage_key(kept_as(kind))
        # Writers of one object take turns: deciding at once, all but one would decide in vain.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def prefix(self, namespace: str = "") -> str:
        """The prefix of the keys of all objects, or of those in one namespace."""
        return f"{self._prefix}{namespace}/" if namespace else self._prefix

    def _key(self, namespace: str, name: str) -> str:
        """Raises StatusError 400 for a name that cannot be part of a path."""
        metadata.check_name(name)
        return self.prefix(namespace) + name

    def has(self, namespace: str, name: str) -> bool:
        """Raises StatusError 400."""
        return self.cache.get(self._key(namespace, name)) is not None

    def find(self, namespace: str, name: str) -> Entry:
        """Raises StatusError 400, 404."""
        entry = self.cache.get(self._key(namespace, name))
        if entry is None:
            raise self._not_found(name)
        return entry

    def check_uid(self, new: ObjectMeta, standing: Entry) -> None:
        """Refuse, with 409, an update meant for another object of that name."""
        object_meta.check_uid(new, standing.object.metadata, self._named.plural, self._named.group)

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
        object_meta.enter(obj, namespace)
        asked, before = (kind.kept.asked(obj), json.encode(obj)) if kind.kept else ((), b"")
        await aside(size, self._enter, obj, track)
        await admission.admit(obj, None)
        object_meta.place(obj.metadata, namespace)
        object_meta.begin(obj, now, has_generation=kind.has_generation and kind.begins_at_one)
        for name in object_meta.names(obj.metadata, extends=kind.extends_names):
            obj.metadata.name = name
            await aside(size, kind.prepare_create, obj, now)
            await admission.settle(obj, None)
            self._refuse_if(await self._judged(size, self._new_faults, obj), obj)
            await admission.validate(obj, None)
            if not dry_run:
                object_meta.check_new(obj.metadata)
            key, data = self.prefix(namespace) + name, await aside(size, self._encoded, obj)
            # Of a name that is taken only a generated one has another to try.
            if dry_run:
                await self.storage.current()
                if await self.storage.get(key) is None:
                    return self._unwritten(key, 0, data, obj)
                continue
            try:
                revision = await self._commit(Write(key, self._to_store(data), None, kind.ttl), obj, None)
            except KeyExistsError as error:
                if error.record.key == key:
                    continue
                self._check_chosen(obj, asked, error)
                again = json.decode(before, self.type)
                return await self.create(again, namespace, admission, track=track, size=size)
            return self._written(key, data, revision, obj)
        goes = bool((standing := self.cache.get(key)) and standing.object.metadata.deletion_timestamp)
        generated = obj.metadata.generate_name != ""
        named = self.kind.resource if generated else self._named
        raise already_exists(named.plural, obj.metadata.name, named.group, goes=goes, generated=generated)

    async def _judged(self, size: int, judge: Callable[..., list[Cause]], *args: Any) -> list[Cause]:
        return await (apart(judge, *args) if self.kind.validates_long else aside(size, judge, *args))

    def _enter(self, obj: T, track: Track) -> None:
        self.kind.default(obj)
        obj.metadata.managed_fields = track(obj, None)

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
            await aside(longer, self._receive, new, current, track)
            asked = self.kind.kept.asked(new) if self.kind.kept else ()
            await admission.admit(new, current.object)
            object_meta.place(new.metadata, namespace)
            await aside(longer, self._prepare, new, current, rules)
            await admission.settle(new, current.object)
            self._refuse_if(await self._judged(longer, self._faults, new, current, rules), new)
            await admission.validate(new, current.object)
            try:
                return await self._replace(new, current, dry_run=dry_run, size=longer)
            except KeyExistsError as error:
                self._check_chosen(new, asked, error)
                raise ConflictError(error.record.key, error.record) from error

        return await self._write(namespace, name, write, admission)

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
            kind, standing = self.kind, current.object.metadata
            object_meta.check_preconditions(
                kind.resource, options.preconditions, standing, current.revision, briefly=kind.own_deletion
            )
            await admission.admit(None, current.object)
            await admission.validate(None, current.object)
            marked, now = self.copy(current), self.clock.now()
            if mark is not None:
                mark(marked)
            if kind.has_dependents:
                object_meta.propagate(marked.metadata, options, orphans=kind.orphans)
            stays = kind.graceful_delete(marked, options, now)
            is_alike = object_meta.is_marked_alike(standing, marked.metadata)
            if is_alike and standing.deletion_grace_period_seconds:
                # Who repeats a deletion whose time is not up changes nothing, not even who goes with it.
                marked = self.copy(current)
            held = bool(marked.metadata.finalizers)
            if held and not stays:
                object_meta.mark_deleted(marked.metadata, now)
            if object_meta.begins_to_go(standing, marked.metadata) and not kind.own_deletion:
                marked.metadata.generation = standing.generation + 1
            vanishes = standing.deletion_timestamp and kind.may_vanish(marked, current.object)
            if held or (stays and not vanishes):
                return Deleted(await self._replace(marked, current, dry_run=dry_run), gone=False)
            if is_alike:
                # It goes as it is: that nothing holds it any more nobody is told.
                marked = self.copy(current)
            elif kind.has_grace and not dry_run:
                # Whoever watches is told first that the time is up, as in Kubernetes.
                current = await self._replace(marked, current, dry_run=False)
            removed = await self._remove(current, dry_run=dry_run)
            # The answer has the marks of a deletion in no time, which nothing stored ever had.
            marked.metadata.resource_version = ""
            gone = Entry(removed.key, removed.revision, self._encoded(marked), self._decoder)
            return Deleted(gone, gone=True)

        return await self._write(namespace, name, write, admission)

    async def _write(
        self, namespace: str, name: str, write: Callable[[Entry], Awaitable[R]], admission: Admission
    ) -> R:
        """Call `write` with the current entry, and again if another server's write came first.

        The cache may be older than what another server has told. Then the storage refuses what is written; a
        refusal by the rules holds only if the object is the same after the cache has caught up.
        """
        key = self._key(namespace, name)
        # A webhook may itself want to write the object that it is asked about.
        turn = nullcontext() if admission.waits else self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            current, is_sure = self.cache.get(key), False
            for _ in range(ATTEMPTS):
                try:
                    if current is None:
                        raise self._not_found(name)
                    return await write(current)
                except ConflictError as error:
                    if error.key != key:
                        continue
                    first, is_sure = error.record, True
                    current = Entry(first.key, first.revision, first.value, self._decoder) if first else None
                except StatusError:
                    if is_sure:
                        raise
                    judged, is_sure = current, True
                    await self.storage.current()
                    current = self.cache.get(key)
                    if (current and current.revision) == (judged and judged.revision):
                        raise
        raise conflict(self._named.plural, name, STALE, self._named.group)

    async def _confirm(self, current: Entry) -> None:
        """Raises ConflictError if the object has changed: what is not written the storage does not judge."""
        await self.storage.current()
        record = await self.storage.get(current.key)
        if record is None or record.revision != current.revision:
            raise ConflictError(current.key, record)

    def _receive(self, new: T, current: Entry, track: Track) -> None:
        kind, old = self.kind, current.object
        object_meta.place(new.metadata, old.metadata.namespace)
        kind.default(new)
        # Told of what was asked for, as in Kubernetes, also where the rules put something back.
        new.metadata.managed_fields = track(new, current)

    def _prepare(self, new: T, current: Entry, rules: Rules | None) -> None:
        kind, old = self.kind, current.object
        if not new.metadata.resource_version.lstrip("0") and not kind.updates_unconditionally:
            # Of the resource, and not of the kind, as in Kubernetes.
            resource = kind.resource
            raise invalid(resource.plural, new.metadata.name, [MUST_NAME_VERSION], resource.group)
        object_meta.check_version(self._named, new.metadata, old.metadata, current.revision)
        new.metadata.resource_version = str(current.revision)
        object_meta.carry_over(new, old)
        entries = new.metadata.managed_fields
        (rules or kind).prepare_update(new, old)
        new.metadata.managed_fields = entries
        # A binding is no change of what is wanted: a pod that runs unchanged is of generation 1.
        counts = kind.has_generation and rules is not UNRULED
        if counts and (kind.counts(new) or object_meta.differs_in_spec(new, old)):
            new.metadata.generation = old.metadata.generation + 1

    def _new_faults(self, obj: T) -> list[Cause]:
        return self.kind.validate_create(obj) or metadata.validate_any(obj.metadata)

    def _faults(self, new: T, current: Entry, rules: Rules | None) -> list[Cause]:
        changes = (rules or self.kind).validate_update(new, current.object)
        if rules is None:
            faults = self.kind.validate_changed(new, current.object)
            if not self.kind.judges_prefix_again:
                faults = [fault for fault in faults if fault.field != "metadata.generateName"]
        else:
            standard = self.kind.standard_finalizers and rules.standard_finalizers
            faults = metadata.validate_written(new.metadata, standard=standard)
        is_first = rules is None and self.kind.tells_changes_first
        faults = [*changes, *faults] if is_first else [*faults, *changes]
        of_name = metadata.validate_any(new.metadata)
        if not faults and not of_name:
            return []
        # What is judged of every kind Kubernetes tells first, and of some kinds once more.
        written = metadata.validate_written(new.metadata, standard=False)
        changed = metadata.validate_update(new.metadata, current.object.metadata)
        if is_first and self.kind.standard_finalizers:
            changed += metadata.validate_written(new.metadata, standard=True)
        return list(dict.fromkeys([*of_name, *written, *changed, *faults]))

    def _encoded(self, obj: T) -> bytes:
        data = pieces.encode(obj, giving_way(json.encode)) if is_aside() else json.encode(obj)
        return with_nulls(data, self.type)

    def _to_store(self, data: bytes) -> bytes:
        """The bytes to store. Raises StatusError 500, in Kubernetes' words, for an object that is too large
        for etcd."""
        if len(data) > OBJECT_LIMIT:
            raise StatusError(500, "", "etcdserver: request is too large")
        return data

    async def _replace(self, new: T, current: Entry, *, dry_run: bool, size: int = 0) -> Entry:
        """Raises ConflictError, KeyExistsError."""
        if current.object.metadata.deletion_timestamp and self.kind.may_vanish(new, current.object):
            await self._remove(current, dry_run=dry_run)
            # The answer has the last change, of a version at which it never was stored.
            new.metadata.resource_version = ""
            return Entry(current.key, current.revision, self._encoded(new), self._decoder)
        new.metadata.resource_version = ""
        entries, standing = new.metadata.managed_fields, current.object.metadata.managed_fields
        if entries != standing and object_meta.untimed(entries) == object_meta.untimed(standing):
            # Who does again what was done changes nothing, not even when it was done.
            new.metadata.managed_fields = standing
            if await aside(size, self._encoded, new) != current.value:
                new.metadata.managed_fields = entries
        if not dry_run:
            new.metadata.self_link = ""
        data = await aside(size, self._encoded, new)
        if data == current.value and not self.storage.is_stale(current.key):
            await self._confirm(current)
            return current
        if dry_run:
            await self._confirm(current)
            return self._unwritten(current.key, current.revision, data, new)
        write = Write(current.key, self._to_store(data), current.revision, self.kind.ttl)
        revision = await self._commit(write, new, current.object)
        return self._written(current.key, data, revision, new)

    async def _remove(self, current: Entry, *, dry_run: bool) -> Entry:
        """Raises ConflictError."""
        if dry_run:
            await self._confirm(current)
            return current
        write = Write(current.key, None, current.revision)
        revision = await self._commit(write, None, current.object)
        return Entry(current.key, revision, current.value, self._decoder)

    async def _commit(self, write: Write, new: T | None, old: T | None) -> int:
        """Make the write, and with it those of the objects kept with `new` and no more with `old`. Raises
        KeyExistsError, ConflictError, also for one of these."""
        if new is not None and write.value is not None:
            self.written_cache.expect(write.key, write.value, partial(_know, new))
        try:
            if self.kept is None:
                return await self.storage.commit([write])
            return await self.kept.commit(write, new, old)
        finally:
            self.written_cache.forget(write.key)

    async def complete(self) -> None:
        """Write what is kept with objects and missing: a podling of before has not written it. Raises
        StatusError."""
        if self.kept is not None:
            await self.kept.complete(entry.object for entry in self.cache.select(self.prefix()).entries)

    def _unwritten(self, key: str, revision: int, data: bytes, obj: T) -> Entry:
        """The entry of a dry run."""
        entry = Entry(key, revision, data, self._decoder)
        if revision:
            obj.metadata.resource_version = str(revision)
        entry.know_object(obj)
        return entry

    def _written(self, key: str, data: bytes, revision: int, obj: T) -> Entry:
        """The entry that was written; from the cache if it has it, unless that is newer already."""
        entry = self.cache.get(key)
        if entry is None or entry.revision != revision:
            entry = Entry(key, revision, data, self._decoder)
        _know(obj, entry)
        return entry

    def _refuse_if(self, faults: Sequence[Cause], obj: T) -> None:
        if faults:
            resource = kept_as(self.kind)
            raise invalid(resource.kind, obj.metadata.name, faults, resource.group)

    def _check_chosen(self, obj: T, asked: Collection[str], error: KeyExistsError) -> None:
        """Refuse what was asked for by name and is another's; what the server chose it may choose anew."""
        name = error.record.key.rpartition("/")[2]
        if self.kind.kept is None or name in asked:
            raise self.kind.kept.taken(obj, name) if self.kind.kept else error

    def _not_found(self, name: str) -> StatusError:
        return not_found(self._named.plural, name, self._named.group)


def _know(obj: KubeObject, entry: Entry) -> None:
    """`obj` is what the entry was encoded from, and nobody changes it any more."""
    obj.metadata.resource_version = str(entry.revision)
    entry.know_object(obj)


class Stores:
    """All stores of the server by type, as admission and reviews look at them. Implements
    `podling.apiserver.admission.plugin.Objects`."""

    def __init__(self, stores: Sequence[Store[Any]]) -> None:
        self.by_type = {store.type: store for store in stores}

    async def complete(self) -> None:
        """Write what is missing of the objects that are kept with others."""
        for store in self.by_type.values():
            await store.complete()

    async def taken_node_ports(self) -> set[int]:
        """Raises StatusError 500."""
        kept = self.by_type[Service].kept
        return await kept.ports.taken() if kept else set()

    def find(self, type: type[T], namespace: str, name: str) -> T | None:
        store = self.by_type[type]
        entry = store.cache.get(store.prefix(namespace) + name)
        return cast(T, entry.object) if entry is not None else None

    def get(self, type: type[T], namespace: str, name: str) -> T:
        """Raises StatusError 404."""
        return cast(T, self.by_type[type].find(namespace, name).object)

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        store = self.by_type[type]
        for entry in store.cache.select(store.prefix(namespace)).entries:
            yield cast(T, entry.object)

    def changes(self, type: type[KubeObject]) -> int:
        return self.by_type[type].cache.changes

    async def create(self, obj: KubeObject) -> None:
        """Store an object that the server itself makes. Raises StatusError."""
        store = self.by_type[type(obj)]
        track = by_server(obj, store.clock.now())
        await store.create(obj, obj.metadata.namespace, _Unasked(), track=track)

    async def replace(self, obj: KubeObject) -> None:
        """Store an object that the server itself has changed. Raises StatusError."""
        store, meta = self.by_type[type(obj)], obj.metadata
        track = by_server(obj, store.clock.now())
        await store.update(meta.namespace, meta.name, lambda _: deepcopy(obj), _Unasked(), track=track)

    async def delete(self, obj: KubeObject) -> None:
        """Raises StatusError."""
        meta = obj.metadata
        await self.by_type[type(obj)].delete(meta.namespace, meta.name, DeleteOptions(), _Unasked())

    async def change(
        self, type: type[T], namespace: str, name: str, change: Callable[[T], None], *, dry_run: bool
    ) -> None:
        """Change the status of an object, as the server itself."""
        store = self.by_type[type]

        def changed(standing: Entry) -> Any:
            copy = store.copy(standing)
            change(copy)
            return copy

        by = Writer(SERVER, type.API_VERSION, "status")
        track = by_update(by, unwritten={}, now=store.clock.now(), versions={})
        await store.update(namespace, name, changed, _Unasked(), rules=UNRULED, track=track, dry_run=dry_run)


class _Unasked:
    """Admission for writes of admission plugins, which are not admitted again."""

    waits = False

    async def admit(self, new: Any, old: Any) -> None: ...

    async def settle(self, new: Any, old: Any) -> None: ...

    async def validate(self, new: Any, old: Any) -> None: ...
