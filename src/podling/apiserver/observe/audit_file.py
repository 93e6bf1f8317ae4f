"""The file of the audit log, written by a thread, and rotated by size.

By itself nothing is dropped to keep up: lines are gathered for a moment, and when too many bytes wait, so do
requests. A batch that the disk refuses is lost, which is counted, logged, and fails the health check `log`;
the next batch is tried.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import ClassVar

from podling.apiserver.observe.audit_batches import Batches, Batching
from podling.apiserver.observe.audit_rotation import Rotation, rotate
from podling.model.rules.audit_modes import BATCH
from podling.model.time import Clock

KUBERNETES = Rotation()
GATHERED = Batching(max_wait=0.05)
"""Handing a batch to the thread costs more than most lines do."""


class AuditFile(Batches):
    """Writes to the file at `path`, or to standard output if that is None."""

    name = "log"
    COMPLAINT: ClassVar[str] = "the audit log cannot be written"

    def __init__(
        self,
        path: Path | None,
        clock: Clock,
        rotation: Rotation = KUBERNETES,
        batching: Batching = GATHERED,
        mode: str = BATCH,
    ) -> None:
        super().__init__(batching, mode)
        self._path = path
        self._clock = clock
        self._rotation = rotation

    async def _deliver(self, batch: list[bytes]) -> str:
        try:
            await asyncio.to_thread(self._append, batch)
        except OSError as error:
            return str(error)
        return ""

    def _left(self, events: list[bytes]) -> None:
        # Nothing else runs any more that waiting for the disk could hold up.
        self._append(events)

    def _append(self, lines: list[bytes]) -> None:
        data = b"\n".join([*lines, b""])
        if self._path is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        with suppress(FileNotFoundError):
            if self._rotation.is_due(self._path.stat().st_size, len(data)):
                rotate(self._path, self._rotation, self._clock.now())
        # Opened anew for each batch: whoever moves the file away finds a new one in its place.
        with open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(data)


@asynccontextmanager
async def audit_file(
    path: Path | None,
    clock: Clock,
    rotation: Rotation = KUBERNETES,
    batching: Batching = GATHERED,
    mode: str = BATCH,
) -> AsyncIterator[AuditFile]:
    """An audit log that is written while the block runs, and complete after it."""
    file = AuditFile(path, clock, rotation, batching, mode)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(file.run())
        try:
            yield file
        finally:
            file.close()
