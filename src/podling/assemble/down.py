"""Ends a podling and everything it runs, also what one that was killed left."""

from __future__ import annotations

import asyncio
import logging

from podling import node_runtime
from podling.assemble.process import Report
from podling.cri.process import Process
from podling.instance import Instance
from podling.starting import StartError

__all__ = ["StartError", "stop"]

STOP_GRACE = 60.0
"""Seconds a podling that was told to stop has before `podling down` ends it."""

log = logging.getLogger(__name__)


def stop(instance: Instance, report: Report) -> None:
    """Raises StartError."""
    asyncio.run(_stop(instance, report))


async def _stop(instance: Instance, report: Report) -> None:
    pid = instance.running()
    if pid is not None:
        report(f"Stopping podling (process {pid}) and its pods")
        try:
            await Process(pid).terminate(STOP_GRACE)
        except ProcessLookupError:
            log.debug("process %d ended by itself", pid)
    lock = instance.lock()
    if lock is None:
        raise StartError(f"another podling has just started for {instance.data_dir}")
    with lock:
        left = await node_runtime.end(instance)
    if pid is None:
        what = "ended what an earlier one had left" if left else "nothing to stop"
        report(f"podling is not running for {instance.data_dir}: {what}")
