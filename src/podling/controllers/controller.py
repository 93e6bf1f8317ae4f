"""What a controller is: a name, a queue of keys, and a `reconcile(key)` that makes one thing right."""

from __future__ import annotations

import asyncio
from typing import Protocol

from podling.client.workqueue import WorkQueue, work

Key = tuple[str, str]
"""(namespace, name) of the object a controller looks after."""


class Controller(Protocol):
    """Its constructor subscribes to informers and only adds keys to `queue`; `reconcile` reads the current
    state.
    """

    name: str
    queue: WorkQueue[Key]

    async def reconcile(self, key: Key) -> None: ...


async def run(controller: Controller, workers: int = 1) -> None:
    """Reconcile for ever; run it after the controller's informers have synced."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(work(controller.queue, controller.reconcile, controller.name))
