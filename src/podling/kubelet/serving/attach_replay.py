"""An attach that also shows what the container printed before it: the output comes from the log and, where it
must not wait for the end of a line, from the runtime (`output_joint.py`); input goes to the runtime as in any
attach.

The runtime's output is always read, into bounded memory, however slow the client is: a runtime that is held
up holds up its container, and containerd does not even stop it then. It is over when the container is, when
the client goes, or, for a client that has said all it had to say, when the container has nothing more to say
for a while. The end of a client's input is not passed on (only `stdinOnce` does that): a runtime told of it
would let go of the outputs, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby

from podling.kubelet.serving.command_relay import (
    KUBELET_STOPS,
    RUNTIME_LOST,
    SUCCESS,
    CommandStreams,
    Dialect,
    drop_with,
    failure,
    leave,
    open_streams,
    opened_in_time,
    tell,
    upload,
)
from podling.kubelet.serving.container_log import ContainerLog
from podling.kubelet.serving.log_directories import LogChanges, LogDirectories
from podling.kubelet.serving.log_file import LogFile
from podling.kubelet.serving.log_format import LogLine, nanoseconds, parse_line
from podling.kubelet.serving.logs import wait_complete
from podling.kubelet.serving.output_joint import OutputJoint
from podling.kubelet.serving.pod_host import Moment
from podling.streaming.errors import Disconnected
from podling.streaming.session import Session, Stream

QUIET = 0.05
"""Seconds without news after which log and runtime are compared."""
SILENCE = 30.0
"""Seconds a container may be silent after its client's last word."""
BEHIND = 256 * 1024
"""Bytes heard and not yet shown, beyond which the log goes on instead."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What was printed before: the container's log. `asked` is when the runtime was asked to attach, in ns
    since the epoch. `passes_end`: the container's input ends with its first client's (`stdinOnce`).
    """

    log: ContainerLog
    directories: LogDirectories
    asked: int
    passes_end: bool


async def relay_replay(
    client: Session,
    runtime: Session,
    wanted: CommandStreams,
    dialect: Dialect,
    kubelet_stops: Moment,
    replay: Replay,
) -> None:
    """Returns when it is over for both sides. Raises OSError when the log cannot be read."""
    ours = await opened_in_time(client, runtime, wanted.types(resize=dialect.resize))
    if ours is None:
        return
    theirs = open_streams(runtime, wanted)
    async with asyncio.TaskGroup() as group:
        uploads = [
            group.create_task(upload(ours[name], theirs[name], passes_end=replay.passes_end))
            for name in ("stdin", "resize")
            if name in ours
        ]
        leaving = group.create_task(drop_with(client, runtime, uploads))
        with replay.directories.changes(replay.log.path) as changes:
            output = _Output(ours, theirs, changes, terminal=wanted.tty)
            stopping = group.create_task(_come(kubelet_stops))
            losing = group.create_task(_lost(theirs["error"]))
            ending = [
                group.create_task(_show(output, replay, changes)),
                group.create_task(_until_silent(ours.get("stdin"), uploads, output)),
                group.create_task(client.wait_lost()),
                stopping,
                losing,
            ]
            done, _ = await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            for task in ending:
                task.cancel()
        output.end()
        told = SUCCESS
        if stopping in done:
            told = failure(KUBELET_STOPS)
        elif done == {losing}:
            told = failure(RUNTIME_LOST)
        await tell(ours["error"], told, dialect)
        await client.finish()
        await leave(runtime)
        await leaving


async def _come(moment: Moment) -> None:
    await moment()


async def _lost(error: Stream) -> None:
    """Returns when the runtime is gone without having said why: what it ends, it says something about."""
    if await error.read():
        await asyncio.Event().wait()


class _Output:
    """The client's outputs, each with its joint. `spoke` is set by everything that is shown."""

    def __init__(
        self,
        ours: Mapping[str, Stream],
        theirs: Mapping[str, Stream],
        changes: LogChanges,
        *,
        terminal: bool,
    ) -> None:
        self._streams = {name: ours[name] for name in ("stdout", "stderr") if name in ours}
        self._theirs = theirs
        self._joints = {name: OutputJoint(terminal=terminal) for name in self._streams}
        self._changes = changes
        self._heard = bytearray()
        self.spoke = asyncio.Event()

    @property
    def live(self) -> bool:
        """Only a terminal is ever, and it has one output."""
        return any(joint.live for joint in self._joints.values())

    async def hear(self) -> None:
        """Reads all outputs of the runtime until they end."""
        async with asyncio.TaskGroup() as group:
            for name, joint in self._joints.items():
                group.create_task(self._hear(self._theirs[name], joint))

    async def _hear(self, stream: Stream, joint: OutputJoint) -> None:
        while data := await stream.read():
            joint.heard(data)
            if joint.live:
                self._heard += data
            if len(self._heard) > BEHIND:
                self.behind()
            self._changes.changed.set()

    def behind(self) -> None:
        self._heard.clear()
        for joint in self._joints.values():
            joint.behind()

    async def show_heard(self) -> bool:
        """Shows what was heard live; False when there is nothing."""
        if not self._heard:
            return False
        data = bytes(self._heard)
        self._heard.clear()
        for name, joint in self._joints.items():
            joint.showed(data)
            await self._write(name, data)
        return True

    async def logged(self, lines: Iterable[tuple[LogLine, bool]]) -> None:
        """Shows lines of the log, each with whether it is newer than the attach."""
        for name, group in groupby(lines, lambda line: line[0].stream.decode()):
            if joint := self._joints.get(name):
                parts = [
                    joint.logged(line.content, line_end=not line.partial, new=new) for line, new in group
                ]
                await self._write(name, b"".join(parts))

    async def quiet(self) -> None:
        for name, joint in self._joints.items():
            await self._write(name, joint.quiet())

    def end(self) -> None:
        for stream in self._streams.values():
            stream.end()

    async def _write(self, name: str, data: bytes) -> None:
        if data:
            self.spoke.set()
            # A client that is gone ends the attach by being gone.
            with suppress(Disconnected):
                await self._streams[name].write(data)


async def _show(output: _Output, replay: Replay, changes: LogChanges) -> None:
    """All output, until the container has ended and its log has been shown to the end."""
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(output.hear())
        over = asyncio.Event()
        ending = group.create_task(wait_complete(replay.log.ended, changes, over))
        with closing(_Log(replay)) as log:
            while True:
                changes.changed.clear()
                # Asked before reading: what is read after the end is all there is.
                was_over = over.is_set()
                if output.live:
                    await _show_live(output, changes, hearing, over)
                elif await log.show(output):
                    continue
                elif was_over:
                    break
                else:
                    await _wait(output, changes)
        hearing.cancel()
        ending.cancel()


async def _show_live(
    output: _Output, changes: LogChanges, hearing: asyncio.Task[None], over: asyncio.Event
) -> None:
    """What a terminal says next; the log goes on when the runtime has no more to say."""
    if await output.show_heard():
        return
    if hearing.done() or over.is_set():
        output.behind()
        return
    await changes.changed.wait()


async def _wait(output: _Output, changes: LogChanges) -> None:
    """For news; in their absence log and runtime are compared."""
    with suppress(TimeoutError):
        async with asyncio.timeout(QUIET):
            await changes.changed.wait()
        return
    await output.quiet()
    if not output.live:
        await changes.changed.wait()


class _Log:
    """The log, line by line."""

    def __init__(self, replay: Replay) -> None:
        self._file = LogFile(replay.log.path)
        self._asked = replay.asked
        self._rest = b""
        self._new = False

    async def show(self, output: _Output) -> bool:
        """Shows some; False at the end of what there is."""
        if data := self._file.read():
            *lines, self._rest = (self._rest + data).split(b"\n")
            await output.logged((line, self._is_new(line)) for raw in lines if (line := parse_line(raw)))
            return True
        if self._file.rotated():
            self._file.reopen()
            return True
        return False

    def _is_new(self, line: LogLine) -> bool:
        """Whether it was written after the runtime had been asked to attach; so are all that follow."""
        self._new = self._new or (nanoseconds(line.timestamp) or 0) >= self._asked
        return self._new

    def close(self) -> None:
        self._file.close()


async def _until_silent(stdin: Stream | None, uploads: list[asyncio.Task[None]], output: _Output) -> None:
    """Returns when a client that has ended its input has heard nothing for a while."""
    if stdin is None:
        await asyncio.Event().wait()
        return
    await asyncio.wait(uploads[:1])
    if not stdin.ended:
        await asyncio.Event().wait()
    with suppress(TimeoutError):
        while True:
            output.spoke.clear()
            async with asyncio.timeout(SILENCE):
                await output.spoke.wait()
