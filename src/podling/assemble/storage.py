"""Volumes made of directories of the node, beside an API server of the same process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.client.workqueue import work
from podling.kubelet.host.size_limits import ProjectQuotas
from podling.kubelet.volumes.directories import PROVISIONER, WORKERS, DirectoryProvisioner
from podling.model.time import Clock

ACCOUNT = "directory-provisioner"
"""The account that makes and deletes volumes."""


async def provide_directories(
    client: Client, informers: Informers, clock: Clock, root: Path, node: str
) -> None:
    """For ever: below `root`, for claims whose pods go to `node`. `informers` are for others, too."""
    events = EventRecorder(client, clock, f"{PROVISIONER}_{node}")
    provisioner = DirectoryProvisioner(client, informers, events, root, node, ProjectQuotas())
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        tasks.create_task(events.run())
        for _ in range(WORKERS):
            tasks.create_task(work(provisioner.queue, provisioner.reconcile, provisioner.name))
