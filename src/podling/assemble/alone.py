"""A part that runs alone: a client of the API server that its kubeconfig names, until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podling.assemble import process
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.machine.start import StartError
from podling.process.small_http import Answering, listening, serving


def read_access(file: Path) -> Access:
    """Raises StartError."""
    try:
        return kubeconfig.read(file)
    except kubeconfig.KubeconfigError as error:
        raise StartError(str(error)) from error


def run(access: Access, act: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    """Raises StartError."""

    async def main(told_to_stop: asyncio.Event) -> None:
        client = Client(access.transport())
        try:
            async with asyncio.TaskGroup() as tasks:
                acting = tasks.create_task(act(client))
                process.started()
                await told_to_stop.wait()
                acting.cancel()
        finally:
            await client.close()

    process.run(main)


@asynccontextmanager
async def served(part: str, place: tuple[str, int] | None, answer: Answering) -> AsyncIterator[None]:
    """Have a part answer at an address, of all if it is empty, and a port while the block runs; nowhere if
    there is no place. Raises StartError."""
    if place is None:
        yield
        return
    try:
        listener = listening(*place)
    except OSError as error:
        raise StartError(f"{part} cannot listen on {place[0]}, port {place[1]}: {error}") from error
    async with serving(answer, listener):
        yield
