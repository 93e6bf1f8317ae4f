"""Joins a container's log with the runtime's attach output, so that nothing is missing and nothing is shown
twice.

The log has everything but the unfinished line. The runtime sends everything since the attach began, and does
not say where in the log that was. So the log is shown first. When both have been quiet for a moment and the
lines from the runtime are the last lines of the log, both are at the same place: the unfinished line is
shown, and a terminal goes on *live*, from the runtime. Without a terminal the log goes on, as it has every
line. A terminal whose client cannot keep up falls *behind*: the log goes on after the last line shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby

import msgspec

from podling.kubelet.logs.format import LogLine, nanoseconds, parse_line
from podling.kubelet.logs.reading import ContainerLog, LogChanges, LogFile
from podling.streaming.session import Stream
from podling.streaming.wire import Disconnected

KEPT = 64 * 1024
"""Bytes of either end that are compared."""
BEHIND = 256 * 1024
"""Bytes from the runtime that are not yet sent, beyond which the output goes on from the log."""


class OutputJoint:
    """The joint of one output: told what the log has and what the runtime says, it gives what to show."""

    def __init__(self, *, terminal: bool) -> None:
        self.live = False
        self._terminal = terminal
        self._logged = bytearray()
        self._logged_lines = 0
        self._heard = bytearray()
        self._heard_lines = 0
        self._shown_lines = 0
        """Lines the runtime has shown and the log has still to be read past."""
        self._early = b""
        """What is shown of a line that has not come from the log."""

    def logged(self, content: bytes, *, line_end: bool, new: bool) -> bytes:
        """The log's next content; no line end says that more of the line follows, `new` that it was written
        after the runtime had been asked. Gives what to show.
        """
        _keep(self._logged, content + b"\n" * line_end)
        self._logged_lines += line_end and new
        if self._shown_lines:
            self._shown_lines -= line_end
            return b""
        early = self._early.rstrip(b"\r")
        if early.startswith(content) and not line_end:
            self._early = early[len(content) :]
            return b""
        self._early = b""
        # A terminal's line is logged without its carriage return.
        return content.removeprefix(early) + (b"\r\n" if self._terminal else b"\n") * line_end

    def heard(self, data: bytes) -> None:
        """The runtime's next output."""
        _keep(self._heard, data)
        self._heard_lines += data.count(b"\n")

    def quiet(self) -> bytes:
        """Neither side has said anything for a moment; may go live. Gives what to show."""
        lines, line_end, rest = bytes(self._heard[-KEPT:]).rpartition(b"\n")
        between_lines = not self._logged or self._logged.endswith(b"\n")
        caught_up = not self._shown_lines and self._logged_lines >= self._heard_lines
        together = self._logged.endswith((lines + line_end).replace(b"\r\n", b"\n"))
        if self.live or not (between_lines and caught_up and together):
            return b""
        if not line_end and not (self._terminal and len(rest) < KEPT):
            # Where this line began is not known: it comes whole, from the log.
            return b""
        self.live = self._terminal
        shown, self._early = rest.removeprefix(self._early), rest
        return shown

    def showed(self, data: bytes) -> None:
        """While live: this has reached the client."""
        self._shown_lines += data.count(b"\n")
        _, line_end, rest = data.rpartition(b"\n")
        self._early = rest if line_end else self._early + rest

    def behind(self) -> None:
        """What was heard while live and not `showed` is lost here: it will come from the log."""
        self.live = False


def _keep(end: bytearray, data: bytes) -> None:
    """Adds `data` to what is compared; what is too old for it goes now and then."""
    end += data
    if len(end) > 4 * KEPT:
        del end[:-KEPT]


class Replay(msgspec.Struct, frozen=True):
    """What an attach with replay shows."""

    log: ContainerLog
    asked: int
    """When the runtime was asked to attach, in ns since the epoch."""
    passes_end: bool
    """The end of the client's input ends the container's (`stdinOnce`)."""
    tells_exit: bool = False
    """Send the container's exit code, as an exec does."""


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

        async def hear(stream: Stream, joint: OutputJoint) -> None:
            while data := await stream.read():
                joint.heard(data)
                if joint.live:
                    self._heard += data
                if len(self._heard) > BEHIND:
                    self.behind()
                self._changes.changed.set()

        async with asyncio.TaskGroup() as group:
            for name, joint in self._joints.items():
                group.create_task(hear(self._theirs[name], joint))

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
            *raws, self._rest = (self._rest + data).split(b"\n")
            lines = []
            for line in filter(None, map(parse_line, raws)):
                # Whether it was written after the runtime had been asked to attach; so are all that follow.
                self._new = self._new or (nanoseconds(line.timestamp) or 0) >= self._asked
                lines.append((line, self._new))
            await output.logged(lines)
            return True
        if self._file.rotated():
            self._file.reopen()
            return True
        return False

    def close(self) -> None:
        self._file.close()
