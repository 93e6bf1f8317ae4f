"""Reading a container's log: all of it or its end, and optionally what is still being written.

A log consists of the parts that rotation has made, oldest first, and the file being written. A reader that is
in the middle when the log is rotated finishes the old file and goes on with the new one. Following waits for
inotify events of the log's directory instead of polling. It ends when the container has exited and the
runtime has closed the file.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar, cast

import msgspec
from asyncinotify import Mask

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.files.descriptors import looked_at, open_regular
from podling.kubelet.logs.format import LogFormatter, LogOptions, tail_offset
from podling.kubelet.logs.rotation import COMPRESSED, moment_of, parts
from podling.kubelet.pod.host import PodHost
from podling.process.directories import Happened, followed
from podling.process.waits import Backoff, woken

P = ParamSpec("P")
T = TypeVar("T")

Write = Callable[[bytes], Awaitable[None]]
Ended = Callable[[], Awaitable[bool]]
"""Returns when the container has ended: True if its log is complete, False if its last bytes may be on their
way.
"""

READ = 256 * 1024
NANO = 1_000_000_000
ASK_AGAIN = Backoff(0.004, 0.1)
"""containerd says for some 25 ms more that a container runs whose end it has told."""
_MASK = Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.CLOSE_WRITE | Mask.ONLYDIR


class LogFile:
    """One log with its older parts, read from the oldest on. Only the last `tail_lines` are read, or the
    parts last written after `since` (ns since the epoch). Raises OSError if there is no log."""

    def __init__(self, path: Path, tail_lines: int | None = None, since: int = 0) -> None:
        self._path = path
        self._file, older = self._open()
        self._seen = {moment_of(part.name) for part in older}
        self._older: deque[BinaryIO] = deque()
        self._before: BinaryIO = io.BytesIO()
        if tail_lines is None:
            self._queue(part for part in older if _ended(part) >= since / NANO)
        else:
            self._seek_tail(older, tail_lines)

    def rotated(self) -> bool:
        """Whether the log has been rotated: another file has its name now."""
        with suppress(FileNotFoundError):
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        return False

    def reopen(self) -> None:
        """Open the new file after a rotation. The old one, and parts made in between, are read first."""
        self._older.append(cast(BinaryIO, self._file))
        self._file, older = self._open()
        fresh = [part for part in older if moment_of(part.name) not in self._seen]
        self._seen.update(moment_of(part.name) for part in fresh)
        # The first of them is the one that was open.
        self._queue(iter(fresh[1:]))

    def read(self) -> bytes:
        """The next bytes, at most READ; empty at the present end."""
        while self._older:
            if data := self._older[0].read(READ):
                return data
            # The part that was read last stays open: a runtime opens the next file before it closes this one,
            # and may still write a line to it.
            self._before.close()
            self._before = self._older.popleft()
        late = self._before.read(READ)
        if late:
            return late
        data = self._file.read(READ) or b""
        return self._before.read() + data if data else data

    def close(self) -> None:
        for part in (*self._older, self._before, self._file):
            part.close()

    def _open(self) -> tuple[io.FileIO, list[Path]]:
        """The file that has the name now, and its older parts. A file that is renamed between the two calls
        is found twice, and counts as the file."""
        file = open_regular(self._path)
        names = parts(self._path.name, os.listdir(self._path.parent))
        older = [self._path.with_name(name) for name in names]
        return file, [part for part in older if not _is(part, file)]

    def _queue(self, older: Iterator[Path]) -> None:
        for part in older:
            # One that is gone, or no file, is no part.
            with suppress(OSError):
                self._older.append(_open_part(part))

    def _seek_tail(self, older: list[Path], lines: int) -> None:
        """Back through the parts until there are enough lines."""
        missing = _tail(cast(BinaryIO, self._file), lines)
        for part in reversed(older):
            if missing <= 0:
                break
            with suppress(OSError):
                opened = _open_part(part)
                tail = _compressed_tail if part.suffix == COMPRESSED else _tail
                missing = tail(opened, missing)
                self._older.appendleft(opened)


def _tail(file: BinaryIO, lines: int) -> int:
    """Seek to where the last `lines` lines begin. Returns how many lines are missing."""
    start = file.seek(tail_offset(file, lines))
    if start:
        return 0
    found = sum(block.count(b"\n") for block in iter(lambda: file.read(READ), b""))
    file.seek(0)
    return lines - found


def _compressed_tail(file: BinaryIO, lines: int) -> int:
    """As `_tail`, for a gzip file, which can only be read forwards: it is read twice."""
    found, last = 0, b""
    while block := file.read(READ):
        found, last = found + block.count(b"\n"), block[-1:]
    file.seek(0)
    # A last line may lack its end.
    skipped = found + (last not in (b"", b"\n")) - lines
    if skipped <= 0:
        return lines - found
    offset = 0
    while block := file.read(READ):
        here = block.count(b"\n")
        if here >= skipped:
            at = -1
            for _ in range(skipped):
                at = block.find(b"\n", at + 1)
            file.seek(offset + at + 1)
            break
        skipped, offset = skipped - here, offset + len(block)
    return 0


def _open_part(part: Path) -> BinaryIO:
    if part.suffix != COMPRESSED:
        return cast(BinaryIO, open_regular(part))
    with looked_at(part) as found:
        return cast(BinaryIO, gzip.open(found, "rb"))


def _is(part: Path, file: io.FileIO) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(part.stat(), os.fstat(file.fileno()))
    return False


def _ended(part: Path) -> float:
    """When it was last written, in seconds since the epoch."""
    with suppress(FileNotFoundError):
        return part.stat().st_mtime
    return 0.0


class LogChanges:
    """Events for one follower of a log: `changed` is set by any event in its directory, `closed` when the
    writer has closed the log."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = asyncio.Event()
        self.closed = asyncio.Event()

    def tell(self, happened: Happened) -> None:
        if happened.mask & Mask.CLOSE_WRITE and happened.name == self.name:
            self.closed.set()
        self.changed.set()


@contextmanager
def log_changes(log: Path) -> Iterator[LogChanges]:
    """Raises OSError when its directory is not there."""
    changes = LogChanges(log.name)
    with followed(log.parent, _MASK, changes.tell):
        yield changes


class ContainerLog(msgspec.Struct, frozen=True):
    """The log of one container, and whether it is complete."""

    path: Path
    _host: PodHost
    _container_id: str

    async def ended(self) -> bool:
        """Returns when the container has ended: True if its log is complete, False if its last bytes may be
        on their way. A runtime calls a container exited once it has written all of its log.
        """
        await self._host.container_ended(self._container_id)
        try:
            status = await self._host.runtime.container_status(self._container_id)
        except RuntimeFault:
            return True
        return status.state != pb.CONTAINER_RUNNING

    async def is_complete(self) -> bool:
        """Whether the container is known to have ended."""
        try:
            status = await self._host.runtime.container_status(self._container_id)
        except RuntimeFault:
            return False
        return status.state == pb.CONTAINER_EXITED

    def exit_code(self) -> int | None:
        """None while it is not known."""
        return self._host.exit_code(self._container_id)


async def container_log(host: PodHost, container_id: str) -> ContainerLog:
    """Raises RuntimeFault, and OSError when there is no such file."""
    path = Path((await host.runtime.container_status(container_id)).log_path)
    path.stat()
    return ContainerLog(path, host, container_id)


async def send_log(
    path: Path,
    options: LogOptions,
    write: Write,
    *,
    tail_lines: int | None = None,
    ended: Ended | None = None,
) -> None:
    """Send what is in the log now; with `ended`, of a container that has, once it is complete. Raises OSError
    if there is no log."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(_opened(path, tail_lines, options.since))
        if ended is not None:
            # It may go meanwhile: with its pod, or because newer instances of the container have ended.
            with suppress(FileNotFoundError):
                await written_out(path, ended)
                log = await stack.enter_async_context(_opened(path, tail_lines, options.since))
        formatter = LogFormatter(options)
        await _send_rest(log, formatter, write)
        await write(formatter.end())


async def follow_log(
    path: Path,
    options: LogOptions,
    write: Write,
    *,
    ended: Ended,
    tail_lines: int | None = None,
) -> None:
    """Sends what there is and what comes, until the container has ended. Raises OSError when there is no log,
    and whatever `write` raises in a group.
    """
    formatter = LogFormatter(options)
    with log_changes(path) as changes:
        async with _opened(path, tail_lines, options.since) as log, asyncio.TaskGroup() as group:
            over = asyncio.Event()
            waiting = group.create_task(wait_complete(ended, changes, over))
            while True:
                changes.changed.clear()
                # Read `over` before the log: only then is what was read certainly complete.
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


async def written_out(path: Path, ended: Ended) -> None:
    """Returns once the log of a container that has ended is complete."""
    with log_changes(path) as changes:
        await wait_complete(ended, changes, asyncio.Event())


async def wait_complete(ended: Ended, changes: LogChanges, over: asyncio.Event) -> None:
    """Set `over` when nothing more will be written: the runtime closes a log after its last line."""
    retry = ASK_AGAIN.begin()
    while not (await ended() or changes.closed.is_set()):
        # The close may have been before we watched; then the runtime soon says that the log is complete.
        await woken(changes.closed, retry.next())
    over.set()
    changes.changed.set()


async def _send_rest(log: LogFile, formatter: LogFormatter, write: Write) -> None:
    def shown() -> bytes | None:
        """What the next of the log comes to; None at its end."""
        data = log.read()
        return formatter.feed(data) if data else None

    while not formatter.full and (part := await _in_thread(shown)) is not None:
        if part:
            await write(part)


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
    """Run `work` in a thread, as a log may be long and its disk slow. Cancellation waits for the thread, so
    that its files are not closed while it reads."""
    running = asyncio.get_running_loop().run_in_executor(None, partial(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait({running})
