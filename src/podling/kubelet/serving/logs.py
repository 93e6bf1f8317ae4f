"""A container's log, from its file to a client: the end of it or all of it, and what is still being written.

Following waits for inotify, never for a timer. The file is read to its end, then again whenever its directory
changes; after a rotation (another file has its name) the old one is read out first. It is over when the
container has ended and the runtime has closed the file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path

from podling.kubelet.serving.log_directories import LogChanges, LogDirectories
from podling.kubelet.serving.log_format import LogFormatter, LogOptions, tail_offset

READ = 256 * 1024
ASK_AGAIN_SECONDS = 0.1

Write = Callable[[bytes], Awaitable[None]]
Ended = Callable[[], Awaitable[bool]]
"""Returns when the container has ended: True if its log is complete, False if its last bytes may be on their
way.
"""


async def send_log(path: Path, options: LogOptions, write: Write, *, tail_lines: int | None = None) -> None:
    """Sends what there is. Raises OSError when there is no log."""
    with closing(_Log(path, tail_lines)) as log:
        formatter = LogFormatter(options)
        await log.send_rest(formatter, write)
        await write(formatter.end())


async def follow_log(
    path: Path,
    options: LogOptions,
    write: Write,
    *,
    directories: LogDirectories,
    ended: Ended,
    tail_lines: int | None = None,
) -> None:
    """Sends what there is and what comes, until the container has ended. Raises OSError when there is no log,
    and whatever `write` raises in a group.
    """
    formatter = LogFormatter(options)
    with directories.changes(path) as changes, closing(_Log(path, tail_lines)) as log:
        async with asyncio.TaskGroup() as group:
            over = asyncio.Event()
            waiting = group.create_task(_end(ended, changes, over))
            while True:
                changes.changed.clear()
                # Asked before reading: what is read after the end is all there is.
                was_over = over.is_set()
                await log.send_rest(formatter, write)
                if formatter.full:
                    break
                if log.rotated():
                    await log.send_rest(formatter, write)
                    log.reopen()
                elif was_over:
                    break
                else:
                    await changes.changed.wait()
            waiting.cancel()
    await write(formatter.end())


async def _end(ended: Ended, changes: LogChanges, over: asyncio.Event) -> None:
    """Sets `over` when nothing more will be written: the runtime closes a log after the last of it."""
    while not (await ended() or changes.closed.is_set()):
        # The close may have been before we watched; then the runtime soon says that the log is complete.
        with suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN_SECONDS):
                await changes.closed.wait()
    over.set()
    changes.changed.set()


class _Log:
    """The file that is read: the one that had the log's name when it was opened."""

    def __init__(self, path: Path, tail_lines: int | None) -> None:
        self._path = path
        self._file = path.open("rb", buffering=0)
        self._file.seek(0 if tail_lines is None else tail_offset(self._file, tail_lines))

    def rotated(self) -> bool:
        """Whether another file has taken the name since."""
        with suppress(FileNotFoundError):
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        return False

    def reopen(self) -> None:
        self._file.close()
        self._file = self._path.open("rb", buffering=0)

    async def send_rest(self, formatter: LogFormatter, write: Write) -> None:
        while not formatter.full and (data := self._file.read(READ)):
            if shown := formatter.feed(data):
                await write(shown)

    def close(self) -> None:
        self._file.close()
