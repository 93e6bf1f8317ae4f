"""Ends a podling and everything it runs. Also one that does not answer, and what a killed one left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from podling.assemble.process import Report
from podling.machine import node_runtime
from podling.machine.instance import Instance
from podling.machine.start import StartError
from podling.process.programs import Process

ANSWER_WITHIN = 10.0
"""Seconds in which a podling handles SIGTERM, unless something blocks its event loop."""
STOP_WITHIN = 60.0
"""Seconds in which it stops after that; containers have ten of them."""
LOOK_EVERY = 0.05


def stop(instance: Instance, report: Report) -> None:
    """Raises StartError."""

    async def main() -> None:
        pid = instance.running()
        if pid:
            report(f"Stopping podling (process {pid}) and its pods")
            await _end(pid, instance, report)
        lock = instance.lock()
        if lock is None:
            raise StartError(f"another podling has just started for {instance.data_dir}")
        with lock:
            left = await node_runtime.end(instance)
        if pid is None:
            what = "ended what an earlier one had left" if left else "nothing to stop"
            report(f"podling is not running for {instance.data_dir}: {what}")

    asyncio.run(main())


async def _end(pid: int, instance: Instance, report: Report) -> None:
    """SIGTERM, and SIGKILL when it does not answer or does not stop in time. Raises StartError."""
    try:
        process = Process(pid)
    except ProcessLookupError:
        return
    # Now that the process is held by its descriptor, its number may become another's.
    if not has_open(pid, instance.lock_file):
        if instance.running() == pid:
            raise StartError(f"process {pid} is not the podling that holds {instance.lock_file}")
        return
    process.send(signal.SIGTERM)
    for _ in range(round(ANSWER_WITHIN / LOOK_EVERY)):
        if has_heard(pid):
            break
        await asyncio.sleep(LOOK_EVERY)
    else:
        report(f"podling (process {pid}) does not answer: it is killed, and what it leaves is ended")
        await process.kill()
        return
    try:
        async with asyncio.timeout(STOP_WITHIN):
            await process.exited()
    except TimeoutError:
        report(f"podling (process {pid}) does not come to an end: it is killed, and what it leaves is ended")
    await process.kill()


def has_open(pid: int, path: Path) -> bool:
    try:
        file, descriptors = path.stat(), list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        # One that the process has closed meanwhile is not there any more.
        with suppress(OSError):
            if os.path.samestat(descriptor.stat(), file):
                return True
    return False


def has_heard(pid: int) -> bool:
    """Whether the process is stopping, and so ignores SIGTERM (see `process.py`), or has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return True
    ignored = next((line.split()[1] for line in lines if line.startswith("SigIgn:")), "0")
    return bool(int(ignored, 16) & 1 << (signal.SIGTERM - 1))
