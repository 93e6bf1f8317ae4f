"""Informers: a local copy of a collection, kept up to date by list and watch, that calls its subscribers with
changes.

Subscribers are called on the event loop, in order, with the old and the new object. They must only note what
to do (put a key into a work queue, wake a worker), never do it. A new subscriber gets the existing objects as
additions. `Informers` has one informer for each type, shared by all that use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.types.meta import KubeObject
from podling.process.waits import Backoff, Turn

T = TypeVar("T", bound=KubeObject)

Handler = Callable[[T | None, T | None], None]
"""Called with (old, new): old is None for an addition, new is None for a deletion."""

RETRY = Backoff(0.05, 30.0)

log = logging.getLogger(__name__)


class Informer(Generic[T]):
    """`run()` it in a task group; read it after `wait_synced()`."""

    def __init__(
        self,
        client: Client,
        type_: type[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self._client = client
        self._type = type_
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._objects: dict[tuple[str, str], T] = {}
        self._handlers: list[Handler[T]] = []
        self._version = ""
        self._synced = asyncio.Event()

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    def items(self) -> Iterable[T]:
        return self._objects.values()

    def has_seen(self, version: str) -> bool:
        """Whether the objects are as new as the resourceVersion `version`."""
        return bool(self._version) and int(self._version) >= int(version)

    def subscribe(self, handler: Handler[T]) -> None:
        self._handlers.append(handler)
        for obj in self._objects.values():
            handler(None, obj)

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        """List, then watch, for ever. A broken watch resumes where it stopped; one that is too old (410)
        lists again."""
        retry = RETRY.begin()
        while True:
            before = self._version
            try:
                if not self._version:
                    before = await self._relist()
                await self._follow()
            except StatusError as error:
                if error.code == 410:
                    self._version = ""
                else:
                    log.warning("watching %s: %s", self._type.__name__, error.message)
            except OSError as error:
                log.warning("watching %s: %s", self._type.__name__, error)
            if self._version not in ("", before):
                retry.reset()
                continue
            # Nothing came: a server that ends every watch at once must not be asked without pause.
            await asyncio.sleep(retry.next())

    async def _relist(self) -> str:
        """List the objects; returns the list's resourceVersion."""
        listing = await self._client.list(
            self._type, self._namespace, label_selector=self._labels, field_selector=self._fields
        )
        found = {_key(obj): obj for obj in listing.items}
        turn = Turn()
        for key in self._objects.keys() - found.keys():
            self._put(key, None)
            await turn.share()
        for key, obj in found.items():
            self._put(key, obj)
            await turn.share()
        self._version = listing.resource_version
        self._synced.set()
        return self._version

    async def _follow(self) -> None:
        changes = self._client.watch(
            self._type,
            self._namespace,
            resource_version=self._version,
            label_selector=self._labels,
            field_selector=self._fields,
        )
        async for events in changes:
            for event in events:
                if event.type != "BOOKMARK":
                    self._put(_key(event.object), None if event.type == "DELETED" else event.object)
                # After the handlers: a handler that fails must not make its event disappear.
                self._version = event.object.metadata.resource_version

    def _put(self, key: tuple[str, str], new: T | None) -> None:
        old = self._objects.get(key)
        if new is not None:
            if old is not None and old.metadata.resource_version == new.metadata.resource_version:
                return
            self._objects[key] = new
        elif old is not None:
            del self._objects[key]
        for handler in self._handlers:
            handler(old, new)


def _key(obj: KubeObject) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


class Informers:
    """Ask for informers, then `start` them; those asked for later need another `start`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._by_type: dict[type[KubeObject], Informer[Any]] = {}
        self._started: set[type[KubeObject]] = set()

    def of(self, type_: type[T]) -> Informer[T]:
        if type_ not in self._by_type:
            self._by_type[type_] = Informer(self._client, type_)
        return cast(Informer[T], self._by_type[type_])

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the informers that do not run yet; returns when all have synced."""
        for type_, informer in self._by_type.items():
            if type_ not in self._started:
                self._started.add(type_)
                tasks.create_task(informer.run())
        for informer in tuple(self._by_type.values()):
            await informer.wait_synced()


async def until(
    client: Client, type_: type[T], namespace: str, name: str, holds: Callable[[T], bool] = lambda obj: True
) -> None:
    """Returns when the object is there and `holds`. An API server that fails is asked again."""
    found = asyncio.Event()

    def seen(old: T | None, new: T | None) -> None:
        if new is not None and new.metadata.name == name and holds(new):
            found.set()

    informer = Informer(client, type_, namespace)
    informer.subscribe(seen)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(informer.run())
        await found.wait()
        following.cancel()
