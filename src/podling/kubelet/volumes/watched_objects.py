"""The ConfigMaps and Secrets that volumes on this node are made of, each watched by its name for as long as
some volume is made of it.

One watch an object, however many pods have it: all a kubelet may ask of a server, and all it wants to know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from podling.client.client import Client
from podling.client.informer import Informer
from podling.model.config import ConfigMap, Secret
from podling.model.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


class ObjectKey(NamedTuple):
    type: type[ConfigMap] | type[Secret]
    namespace: str
    name: str


Changed = Callable[[ObjectKey, KubeObject | None], None]
"""Called on the event loop with the new object, None when it was deleted."""


class _Watch(msgspec.Struct):
    task: asyncio.Task[None]
    followers: list[Changed] = msgspec.field(default_factory=list)


class WatchedObjects:
    """`tasks` owns the watches."""

    def __init__(self, client: Client, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self._watches: dict[ObjectKey, _Watch] = {}

    def follow(self, key: ObjectKey, changed: Changed) -> None:
        """Who follows first is also told of the object that is there."""
        if key not in self._watches:
            self._watches[key] = _Watch(self._begin(key.type, key))
        self._watches[key].followers.append(changed)

    def leave(self, key: ObjectKey, changed: Changed) -> None:
        watch = self._watches[key]
        watch.followers.remove(changed)
        if not watch.followers:
            watch.task.cancel()
            del self._watches[key]

    def _begin(self, type_: type[T], key: ObjectKey) -> asyncio.Task[None]:
        selector = f"metadata.name={key.name}"
        informer = Informer(self._client, type_, key.namespace, field_selector=selector)
        informer.subscribe(partial(self._tell, key))
        return self._tasks.create_task(informer.run(), name=f"watch {key.type.__name__} {key.name}")

    def _tell(self, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        for changed in tuple(self._watches[key].followers):
            changed(key, new)
