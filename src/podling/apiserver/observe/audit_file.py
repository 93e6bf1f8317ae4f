"""The file of the audit log, written by a thread, one batch at a time, and rotated by size.

    completed ─▶ waiting (at most about FULL_BYTES) ─▶ thread ─▶ audit.log ─▶ audit-TIME.log

Nothing is dropped to keep up: when too many bytes wait, requests wait until there is room. A batch that the
disk refuses is lost, which is counted, logged, and fails the health check `log`; the next batch is tried.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from podling.apiserver.observe.audit_rotation import Rotation, rotate
from podling.model.time import Clock
from podling.process.waits import woken

KUBERNETES = Rotation()
FULL_BYTES = 4 * 1024 * 1024
GATHER_SECONDS = 0.05
"""How long to collect lines for a batch: handing one to the thread costs more than most lines do."""

log = logging.getLogger(__name__)


class AuditFile:
    """An audit `Sink` that writes to the file at `path`, or to standard output if that is None."""

    def __init__(self, path: Path | None, clock: Clock, rotation: Rotation = KUBERNETES) -> None:
        self._path = path
        self._clock = clock
        self._rotation = rotation
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._hurry = asyncio.Event()
        self._closed = False
        self.lost = 0
        """Lines that could not be written."""
        self.fault = ""
        """Why the last batch could not be written, empty when it was."""

    @property
    def full(self) -> bool:
        return self._waiting_bytes > FULL_BYTES

    async def room(self) -> None:
        while self.full:
            self._room.clear()
            await self._room.wait()

    def write(self, line: bytes) -> None:
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        self._news.set()
        if self.full:
            self._hurry.set()

    async def run(self) -> None:
        """Write batches until closed, and then what is left."""
        try:
            while not (self._closed and not self._waiting):
                await self._news.wait()
                self._news.clear()
                await self._gather()
                await self._write_waiting()
        finally:
            # Cancelled: nothing else runs any more that waiting for the disk could hold up.
            self._append(b"".join(self._waiting))

    def close(self) -> None:
        self._closed = True
        self._hurry.set()
        self._news.set()

    async def _gather(self) -> None:
        """Wait until enough lines for a batch have been collected, or GATHER_SECONDS have passed."""
        await woken(self._hurry, GATHER_SECONDS)
        if not self._closed:
            self._hurry.clear()

    async def _write_waiting(self) -> None:
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._room.set()
        if not lines:
            return
        try:
            await asyncio.to_thread(self._append, b"".join(lines))
            self.fault = ""
        except OSError as error:
            if not self.fault:
                log.error("the audit log cannot be written: %s", error)
            self.fault = str(error)
            self.lost += len(lines)

    def _append(self, data: bytes) -> None:
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
    path: Path | None, clock: Clock, rotation: Rotation = KUBERNETES
) -> AsyncIterator[AuditFile]:
    """An audit log that is written while the block runs, and complete after it."""
    file = AuditFile(path, clock, rotation)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(file.run())
        try:
            yield file
        finally:
            file.close()
