"""One informer a type, for all who look at the same objects."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

from podling.client.client import Client
from podling.client.informer import Informer
from podling.model.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


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
        """Run those that do not run yet; returns when all have their objects."""
        for type_, informer in self._by_type.items():
            if type_ not in self._started:
                self._started.add(type_)
                tasks.create_task(informer.run())
        for informer in tuple(self._by_type.values()):
            await informer.wait_synced()
