"""What an attach shows of a container's log, and of what the runtime says beside it: the log read line by
line, and the client's outputs, where both come together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby

import msgspec

from podling.kubelet.serving.container_log import ContainerLog
from podling.kubelet.serving.log_directories import LogChanges, LogDirectories
from podling.kubelet.serving.log_file import LogFile
from podling.kubelet.serving.log_format import LogLine, nanoseconds, parse_line
from podling.kubelet.serving.output_joint import OutputJoint
from podling.streaming.errors import Disconnected
from podling.streaming.session import Stream

BEHIND = 256 * 1024
"""Bytes heard and not yet shown, beyond which the log goes on instead."""


class Replay(msgspec.Struct, frozen=True):
    """What was printed before: the container's log. `asked` is when the runtime was asked to attach, in ns
    since the epoch. `passes_end`: the container's input ends with its first client's (`stdinOnce`).
    `tells_exit`: the container's exit code is told as an exec tells it.
    """

    log: ContainerLog
    directories: LogDirectories
    asked: int
    passes_end: bool
    tells_exit: bool = False


class ReplayOutput:
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


class ReplayLog:
    """The log, line by line."""

    def __init__(self, replay: Replay) -> None:
        self._file = LogFile(replay.log.path)
        self._asked = replay.asked
        self._rest = b""
        self._new = False

    async def show(self, output: ReplayOutput) -> bool:
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
