"""The scheduler alone, and the controllers alone: clients of the API server their kubeconfig names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from podling.assemble import process
from podling.assemble.access import access_from
from podling.assemble.acting import run_controllers, run_scheduler
from podling.assemble.process import Report
from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.model.time import SystemClock
from podling.starting import StartError

__all__ = ["StartError", "control", "schedule"]


def schedule(kubeconfig: Path, report: Report) -> None:
    """Schedule until told to stop. Raises StartError."""
    access = access_from(kubeconfig)
    report(f"Scheduling for {access.server}")
    _run(access, lambda client: run_scheduler(client, SystemClock()))


def control(kubeconfig: Path, root_ca: Path | None, report: Report) -> None:
    """Run the controllers until told to stop. Pods are given `root_ca` to trust, in PEM; without one the
    authority this client trusts. Raises StartError."""
    access = access_from(kubeconfig)
    ca = root_ca.read_text() if root_ca else access.certificate_authority.decode()
    report(f"Controlling for {access.server}")
    _run(access, lambda client: run_controllers(client, ca, SystemClock()))


def _run(access: Access, act: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main(told_to_stop: asyncio.Event) -> None:
        client = Client(access.transport())
        try:
            async with asyncio.TaskGroup() as tasks:
                acting = tasks.create_task(act(client))
                await told_to_stop.wait()
                acting.cancel()
        finally:
            await client.close()

    process.run(main)
