"""Gives up a pull that makes no progress.

A registry that takes a connection and then says nothing would hold up a pull for ever: CRI has no deadline
for it, and not every runtime has one of its own (containerd has since 1.7). So the runtime is asked now and
then how far its pulls have come. It does not say which bytes are whose: a pull that hangs beside one that
gets on is only given up after that one has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import NoReturn

from podling.cri.interface import CANCELLED, Runtime, RuntimeFault
from podling.kubelet.pulling.pull_errors import given_up_by_runtime, stuck

LOOKS = 4
"""How often the runtime is asked within the deadline: that many times in a row nothing has changed."""


async def until_stuck(runtime: Runtime, image: str, pull: Awaitable[str], deadline: timedelta) -> str:
    """What the pull returns. Raises RuntimeFault: the pull's own, or that it got on no longer."""
    try:
        async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(runtime, deadline, patience))
            try:
                return await pull
            except RuntimeFault as fault:
                failed = fault
            finally:
                watching.cancel()
    except TimeoutError:
        raise stuck(image, deadline) from None
    raise given_up_by_runtime(image) if failed.code == CANCELLED else failed


async def _watch(runtime: Runtime, deadline: timedelta, patience: asyncio.Timeout) -> NoReturn:
    seen, quiet = None, 0
    while True:
        await asyncio.sleep(deadline.total_seconds() / LOOKS)
        try:
            now = await runtime.pull_progress()
        except RuntimeFault:
            # One that is away will end the pull itself.
            now = None
        quiet = quiet + 1 if now is not None and now == seen else 0
        seen = now
        if quiet >= LOOKS:
            patience.reschedule(asyncio.get_running_loop().time())
