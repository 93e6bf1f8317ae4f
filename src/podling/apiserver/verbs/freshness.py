"""Waiting for a revision that is yet to come: the client may have it from another server, or read ahead of a
write that is on its way. As in Kubernetes, who has waited in vain is told to try again.
"""

from __future__ import annotations

import asyncio

from podling.model.errors import Cause, StatusError
from podling.watch.cache import ResourceCache

LONGEST_WAIT = 3.0


async def until_fresh(cache: ResourceCache, revision: int) -> None:
    """Returns as soon as `cache` is as new as `revision`. Raises StatusError 504."""
    if revision <= cache.revision:
        return
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            await cache.reached(revision)
    except TimeoutError:
        raise too_large(revision, cache.revision) from None


def too_large(wanted: int, current: int) -> StatusError:
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return StatusError(504, "Timeout", message, causes=[cause], retry_after_seconds=1)
