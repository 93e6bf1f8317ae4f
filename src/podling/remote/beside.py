"""Tasks beside a block of a command, whose errors stay what they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """They run while the block does. The first error of them or of the block ends all, and is raised as it
    is: a command tells its user one."""
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(work) for work in works]
            yield
            for task in running:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None


def first_of(error: BaseException) -> BaseException:
    """Of those that a group of tasks ended with."""
    return first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
