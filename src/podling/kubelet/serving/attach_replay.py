"""An attach that also shows what the container printed before it: the output comes from the log, then from
the runtime (`output_joint.py`); input goes to the runtime as in any attach.

It is over when the container is, when the client goes, or, for a client that has said all it had to say, when
the container has nothing more to say for a while. The end of a client's input is not passed on (only
`stdinOnce` does that): a runtime told of it would let go of the outputs, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from podling.kubelet.serving.command_relay import (
    LAST_WORDS,
    SUCCESS,
    CommandStreams,
    Dialect,
    drop_with,
    opened_in_time,
    tell,
    upload,
)
from podling.kubelet.serving.log_directories import LogChanges, LogDirectories
from podling.kubelet.serving.log_format import parse_line
from podling.kubelet.serving.logs import Ended, LogFile, wait_complete
from podling.kubelet.serving.output_joint import OutputJoint
from podling.streaming.errors import Disconnected
from podling.streaming.session import Session, Stream

QUIET = 0.05
"""Seconds without news after which log and runtime are compared."""
SILENCE = 30.0
"""Seconds a container may be silent after its client's last word."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What was printed before: the container's log, and who knows when it is complete. `passes_end`: the
    container's input ends with its first client's (`stdinOnce`).
    """

    log: Path
    directories: LogDirectories
    ended: Ended
    passes_end: bool


async def relay_replay(
    client: Session, runtime: Session, wanted: CommandStreams, dialect: Dialect, replay: Replay
) -> None:
    """Returns when it is over for both sides. Raises OSError when the log cannot be read."""
    ours = await opened_in_time(client, runtime, wanted.types(resize=dialect.resize))
    if ours is None:
        return
    theirs = {name: runtime.open({"streamtype": name}) for name in wanted.types(resize=True)}
    async with asyncio.TaskGroup() as group:
        output = _Output(ours, wanted.tty)
        uploads = [
            group.create_task(upload(ours[name], theirs[name], passes_end=replay.passes_end))
            for name in ("stdin", "resize")
            if name in ours
        ]
        leaving = group.create_task(drop_with(client, runtime, uploads))
        with replay.directories.changes(replay.log) as changes:
            showing = group.create_task(_show(output, theirs, replay, changes))
            silence = group.create_task(_until_silent(ours.get("stdin"), uploads, output))
            gone = group.create_task(client.wait_lost())
            await asyncio.wait([showing, silence, gone], return_when=asyncio.FIRST_COMPLETED)
            for task in (showing, silence, gone):
                task.cancel()
        output.end()
        lost = showing.done() and not showing.cancelled() and not showing.result()
        await tell(ours["error"], b"" if lost else SUCCESS, dialect)
        await client.finish()
        runtime.drop()
        await leaving


class _Output:
    """The client's outputs, and the joint of each. `spoke` is set by everything that is shown."""

    def __init__(self, ours: Mapping[str, Stream], terminal: bool) -> None:
        self._streams = {name: ours[name] for name in ("stdout", "stderr") if name in ours}
        self._joints = {name: OutputJoint(terminal=terminal) for name in self._streams}
        self.spoke = asyncio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._streams)

    @property
    def live(self) -> bool:
        return all(joint.live for joint in self._joints.values())

    async def logged(self, name: str, content: bytes) -> None:
        if name in self._joints:
            await self._write(name, self._joints[name].logged(content))

    async def heard(self, name: str, data: bytes) -> None:
        await self._write(name, self._joints[name].heard(data))

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


async def _show(output: _Output, theirs: Mapping[str, Stream], replay: Replay, changes: LogChanges) -> bool:
    """All output. True at the end of the container, False when the runtime was lost before."""
    async with asyncio.TaskGroup() as group:
        hearing = [group.create_task(_hear(name, theirs[name], output, changes)) for name in output.names]
        over = asyncio.Event()
        ending = group.create_task(wait_complete(replay.ended, changes, over))
        await _show_log(output, replay.log, changes, over)
        # Outputs and container end together; which is known first is chance.
        heard = group.create_task(_all(hearing))
        await asyncio.wait([heard, ending], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait([heard, ending], timeout=LAST_WORDS)
        for task in (*hearing, heard, ending):
            task.cancel()
    return over.is_set()


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _hear(name: str, stream: Stream, output: _Output, changes: LogChanges) -> None:
    while data := await stream.read():
        await output.heard(name, data)
        changes.changed.set()


async def _show_log(output: _Output, path: Path, changes: LogChanges, over: asyncio.Event) -> None:
    """The log, until the runtime has taken all over or the container has ended."""
    with closing(LogFile(path)) as log:
        rest = b""
        while not output.live:
            changes.changed.clear()
            # Asked before reading: what is read after the end is all there is.
            was_over = over.is_set()
            while data := log.read():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    await _show_line(output, line)
            if log.rotated():
                log.reopen()
            elif was_over:
                return
            elif await _is_quiet(changes):
                await output.quiet()
                if not output.live:
                    await changes.changed.wait()


async def _show_line(output: _Output, raw: bytes) -> None:
    if line := parse_line(raw):
        await output.logged(line.stream.decode(), line.content if line.partial else line.content + b"\n")


async def _is_quiet(changes: LogChanges) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(QUIET):
            await changes.changed.wait()
        return False
    return True


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
