"""Informers: a local copy of a collection, kept up to date by list and watch, that calls its subscribers with
changes.

Subscribers are called on the event loop, in order, with the old and the new object. They must only note what
to do (put a key into a work queue, wake a worker), never do it. A new subscriber gets the existing objects as
additions. `Informers` has one informer for each type, shared by all that use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.types.meta import KubeObject
from podling.process.waits import Backoff, Turn

T = TypeVar("T", bound=KubeObject)

Handler = Callable[[T | None, T | None], None]
"""Called with (old, new): old is None for an addition, new is None for a deletion."""

RETRY = Backoff(0.05, 30.0)

Choice = tuple[type[KubeObject], str, str]
"""Type, namespace and field selector of what an informer sees."""

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
        self._objects: dict[str, dict[str, T]] = {}
        """By namespace and name."""
        self._handlers: list[Handler[T]] = []
        self._version = ""
        self._synced = asyncio.Event()

    def get(self, namespace: str, name: str) -> T | None:
        return self.of_namespace(namespace).get(name)

    def items(self) -> Iterable[T]:
        return chain.from_iterable(named.values() for named in self._objects.values())

    def of_namespace(self, namespace: str) -> Mapping[str, T]:
        """By name."""
        return self._objects.get(namespace, {})

    def has_seen(self, version: str) -> bool:
        """Whether the objects are as new as the resourceVersion `version`."""
        return bool(self._version) and int(self._version) >= int(version)

    def subscribe(self, handler: Handler[T]) -> None:
        self._handlers.append(handler)
        for obj in self.items():
            handler(None, obj)

    def is_synced(self) -> bool:
        return self._synced.is_set()

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
        for key in {_key(obj) for obj in self.items()} - found.keys():
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
        namespace, name = key
        old = self.get(namespace, name)
        if new is not None:
            if old is not None and old.metadata.resource_version == new.metadata.resource_version:
                return
            self._objects.setdefault(namespace, {})[name] = new
        elif old is not None:
            del self._objects[namespace][name]
            if not self._objects[namespace]:
                del self._objects[namespace]
        for handler in self._handlers:
            handler(old, new)


def _key(obj: KubeObject) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


class Groups(Generic[T]):
    """The objects of an informer by what `group_of` says of each; those that it says None of are left out."""

    def __init__(self, informer: Informer[T], group_of: Callable[[T], Hashable]) -> None:
        self._group_of = group_of
        self._groups: defaultdict[Hashable, dict[tuple[str, str], T]] = defaultdict(dict)
        informer.subscribe(self._changed)

    def of(self, group: Hashable) -> Collection[T]:
        return self._groups[group].values() if group in self._groups else ()

    def _changed(self, old: T | None, new: T | None) -> None:
        if old is not None and (group := self._group_of(old)) is not None:
            del self._groups[group][_key(old)]
            if not self._groups[group]:
                del self._groups[group]
        if new is not None and (group := self._group_of(new)) is not None:
            self._groups[group][_key(new)] = new


class Informers:
    """Ask for informers, then `start` them; those asked for later need another `start`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._by_choice: dict[Choice, Informer[Any]] = {}
        self._started: set[Choice] = set()

    def of(self, type_: type[T], namespace: str = "", *, field_selector: str = "") -> Informer[T]:
        choice = type_, namespace, field_selector
        if choice not in self._by_choice:
            made = Informer(self._client, type_, namespace, field_selector=field_selector)
            self._by_choice[choice] = made
        return cast(Informer[T], self._by_choice[choice])

    def are_synced(self) -> bool:
        return all(informer.is_synced() for informer in self._by_choice.values())

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the informers that do not run yet; returns when all have synced."""
        for choice, informer in self._by_choice.items():
            if choice not in self._started:
                self._started.add(choice)
                tasks.create_task(informer.run())
        for informer in tuple(self._by_choice.values()):
            await informer.wait_synced()


async def until(
    client: Client, type_: type[T], namespace: str, name: str, holds: Callable[[T], bool] = lambda obj: True
) -> None:
    """Returns when the object is there and `holds`. An API server that fails is asked again."""
    found = asyncio.Event()

    def seen(old: T | None, new: T | None) -> None:
        if new is not None and new.metadata.name == name and holds(new):
            found.set()

    informer = Informer(client, type_, namespace, field_selector=f"metadata.name={name}")
    informer.subscribe(seen)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(informer.run())
        await found.wait()
        following.cancel()
