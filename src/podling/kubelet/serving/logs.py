"""A container's log, from its file to a client: the end of it or all of it, and what is still being written.

Following waits for inotify, never for a timer. The file is read to its end, then again whenever its directory
changes; after a rotation (another file has its name) the old one is read out first. It is over when the
container has ended and the runtime has closed the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from podling.kubelet.serving.log_directories import LogChanges, LogDirectories
from podling.kubelet.serving.log_file import LogFile
from podling.kubelet.serving.log_format import LogFormatter, LogOptions

P = ParamSpec("P")
T = TypeVar("T")

ASK_AGAIN_SECONDS = 0.1

Write = Callable[[bytes], Awaitable[None]]
Ended = Callable[[], Awaitable[bool]]
"""Returns when the container has ended: True if its log is complete, False if its last bytes may be on their
way.
"""


async def send_log(path: Path, options: LogOptions, write: Write, *, tail_lines: int | None = None) -> None:
    """Sends what there is. Raises OSError when there is no log."""
    async with _opened(path, tail_lines, options.since) as log:
        formatter = LogFormatter(options)
        await _send_rest(log, formatter, write)
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
    with directories.changes(path) as changes:
        async with _opened(path, tail_lines, options.since) as log, asyncio.TaskGroup() as group:
            over = asyncio.Event()
            waiting = group.create_task(wait_complete(ended, changes, over))
            while True:
                changes.changed.clear()
                # Asked before reading: what is read after the end is all there is.
                was_over = over.is_set()
                await _send_rest(log, formatter, write)
                if formatter.full:
                    break
                if log.rotated():
                    log.reopen()
                elif was_over:
                    break
                else:
                    await changes.changed.wait()
            waiting.cancel()
    await write(formatter.end())


async def written_out(path: Path, ended: Ended, directories: LogDirectories) -> None:
    """Returns once the log of a container that has ended is complete."""
    with directories.changes(path) as changes:
        await wait_complete(ended, changes, asyncio.Event())


async def wait_complete(ended: Ended, changes: LogChanges, over: asyncio.Event) -> None:
    """Sets `over` when nothing more will be written: the runtime closes a log after the last of it."""
    while not (await ended() or changes.closed.is_set()):
        # The close may have been before we watched; then the runtime soon says that the log is complete.
        with suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN_SECONDS):
                await changes.closed.wait()
    over.set()
    changes.changed.set()


async def _send_rest(log: LogFile, formatter: LogFormatter, write: Write) -> None:
    while not formatter.full and (shown := await _in_thread(_next, log, formatter)) is not None:
        if shown:
            await write(shown)


def _next(log: LogFile, formatter: LogFormatter) -> bytes | None:
    """What the next of it comes to; None at its end."""
    data = log.read()
    return formatter.feed(data) if data else None


@asynccontextmanager
async def _opened(path: Path, tail_lines: int | None, since: int) -> AsyncIterator[LogFile]:
    """Raises OSError."""
    logs: list[LogFile] = []
    try:
        await _in_thread(lambda: logs.append(LogFile(path, tail_lines, since)))
        yield logs[0]
    finally:
        for log in logs:
            log.close()


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """A log may be long and its disk slow. Who is cancelled waits for the thread all the same: what it reads
    must not be closed under it."""
    running = asyncio.get_running_loop().run_in_executor(None, partial(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait({running})
