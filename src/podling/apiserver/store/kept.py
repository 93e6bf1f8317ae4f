"""What is written together with an object of a kind, in one transaction: the objects that it has for as long
as it is as it is (`Kept`, in `kinds/kind.py`), those that go when it does, and the node ports that it gets
and gives back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

from podling.apiserver.apply.apply import Track, by_update
from podling.apiserver.apply.managed_fields import Writer
from podling.apiserver.kinds.kind import Kept, storage_key
from podling.apiserver.store import object_meta
from podling.apiserver.store.node_ports import NodePorts
from podling.model.codec import json
from podling.model.codec.json import with_nulls
from podling.model.scheme import resource_of
from podling.model.time import Clock
from podling.model.types.meta import KubeObject
from podling.storage.interface import Record, Storage, Write

T = TypeVar("T", bound=KubeObject)

SERVER = "kube-apiserver"
"""The manager of fields that the server itself writes."""


class KeptWith(Generic[T]):
    def __init__(self, kept: Kept[T], storage: Storage, clock: Clock) -> None:
        self._kept = kept
        self._storage = storage
        self._clock = clock
        self.ports = NodePorts(storage)

    async def commit(self, write: Write, new: T | None, old: T | None) -> int:
        """Make the write of an object that is `new` in place of `old`, and with it what is kept with the one
        and no more with the other. Raises KeyExistsError, ConflictError, also for one of these."""
        if self._kept is None:
            return await self._storage.commit([write])
        wanted, standing = (
            {_key(one): one for one in self._kept.of(obj)} if obj else {} for obj in (new, old)
        )
        if new is None and old is not None:
            standing |= {_key(one): one for one in self._kept.going(old)}
        now = self._clock.now()
        writes = [_beginning(key, one, now) for key, one in wanted.items() if key not in standing]
        for key, one in standing.items():
            # Somebody may have deleted it.
            if key not in wanted and (record := await self._storage.get(key)) is not None:
                writes.append(_ending(record, type(one), now))
        given, held = (self._kept.node_ports(obj) if obj else set() for obj in (new, old))
        return await self.ports.commit([*writes, write], given - held, held - given)

    async def complete(self, objects: Iterable[T]) -> None:
        """Write what is kept with them and missing. Raises StatusError."""
        kept, now, every = self._kept, self._clock.now(), list(objects)
        missing = [
            self._storage.commit([_beginning(key, one, now)])
            for obj in every
            for one in kept.of(obj)
            if await self._storage.get(key := _key(one)) is None
        ]
        await asyncio.gather(*missing)
        await self.ports.complete({port for obj in every for port in kept.node_ports(obj)})


def _key(obj: KubeObject) -> str:
    return storage_key(resource_of(type(obj)), obj.metadata.namespace, obj.metadata.name)


def by_server(obj: KubeObject, now: datetime) -> Track:
    return by_update(Writer(SERVER, obj.API_VERSION, ""), unwritten={"f:status": {}}, now=now, versions={})


def _beginning(key: str, obj: KubeObject, now: datetime) -> Write:
    """The creation of an object by the server itself."""
    object_meta.enter(obj, obj.metadata.namespace)
    object_meta.begin(obj, now, has_generation=False)
    obj.metadata.managed_fields = by_server(obj, now)(obj, None)
    return Write(key, with_nulls(json.encode(obj), type(obj)), None)


def _ending(record: Record, type_: type[KubeObject], now: datetime) -> Write:
    """The deletion of an object, or the mark of it if finalizers hold the object."""
    obj = json.decode(record.value, type_)
    if not obj.metadata.finalizers:
        return Write(record.key, None, record.revision)
    object_meta.mark_deleted(obj.metadata, now)
    return Write(record.key, with_nulls(json.encode(obj), type_), record.revision)
