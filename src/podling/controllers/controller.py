"""What a controller is: a name, a queue of keys, and a `reconcile(key)` that makes one thing right."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from podling.client.workqueue import WorkQueue, work
from podling.model.errors import StatusError

K = TypeVar("K")

Key = tuple[str, str]
"""(namespace, name) of the object a controller looks after."""


class Controller(Protocol[K]):
    """Its constructor subscribes to informers and only adds keys to `queue`; `reconcile` reads the current
    state.
    """

    name: str
    queue: WorkQueue[K]

    async def reconcile(self, key: K) -> None: ...


async def run(controller: Controller[K], workers: int = 1) -> None:
    """Reconcile for ever; run it after the controller's informers have synced."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(work(controller.queue, controller.reconcile, controller.name))


@contextmanager
def gone_is_done() -> Iterator[None]:
    """For calls on an object that may vanish meanwhile: then there is nothing left to do to it."""
    try:
        yield
    except StatusError as error:
        if error.code != 404:
            raise
