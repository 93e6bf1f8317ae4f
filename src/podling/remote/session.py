"""A person, a file or a pipe at one end, a container at the other, and what passes between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, nullcontext, suppress
from typing import NamedTuple

from podling.debug.joined import before
from podling.remote import keyboard, terminal
from podling.remote.beside import beside
from podling.remote.recording import Unrecorded
from podling.remote.streams import Command, Ended
from podling.streaming.session import Stream
from podling.streaming.wire import Disconnected

STDIN, STDOUT, STDERR = range(3)
LAST = 256
"""Bytes of what was shown that are kept."""
CATCH_UP = 0.1
"""Seconds in which an attach shows what a log already has."""

Log = Callable[[], Awaitable[bytes]]


class Conversation(NamedTuple):
    """How it ended, None for a connection that was lost; how many bytes were shown, and the last of them."""

    ended: Ended | None
    shown: int
    last: bytes


async def converse(
    command: Command, *, raw: bool, recording: Unrecorded, log: Log | None = None, passes_end: bool = True
) -> Conversation:
    """Pass everything on until the command has ended. `raw`: the terminal at standard input is the command's.
    `log` has what the container printed before, if the attach does not show it. `passes_end`: the command is
    told that its input has ended."""
    shown = _Shown(recording, raw=raw)
    with keyboard.raw(STDIN) if raw else nullcontext():
        typed = _typed(command, recording, shown.has_begun, passes_end)
        inward = [typed, *([_sized(command, recording)] if raw else [])]
        outward = [
            shown.pass_on(stream, descriptor)
            for stream, descriptor in ((command.stdout, STDOUT), (command.stderr, STDERR))
            if stream is not None
        ]
        async with beside(*inward):
            *_, ended = await asyncio.gather(*outward, shown.begin(log), command.ended())
    return Conversation(ended, shown.count, shown.last)


class _Shown:
    """Holds the first output back until what came before it is shown. `has_begun`: the log was read."""

    def __init__(self, recording: Unrecorded, *, raw: bool) -> None:
        self.count, self.last = 0, b""
        self.has_begun = asyncio.Event()
        self._recording, self._raw = recording, raw
        self._held: list[tuple[int, bytes]] | None = []

    async def begin(self, log: Log | None) -> None:
        printed = b"" if log is None else await log()
        self.has_begun.set()
        if log is not None:
            await asyncio.sleep(CATCH_UP)
            attached = b"".join(piece for _, piece in self._held or ())
            self._write(STDOUT, before(printed, attached))
        held, self._held = self._held, None
        for descriptor, piece in held or ():
            self._write(descriptor, piece)

    async def pass_on(self, stream: Stream, descriptor: int) -> None:
        while piece := await stream.read():
            if self._held is None:
                self._write(descriptor, piece)
            else:
                self._held.append((descriptor, piece))

    def _write(self, descriptor: int, piece: bytes) -> None:
        self.count += len(piece)
        self.last = (self.last + piece)[-LAST:]
        self._recording.shown(piece, raw=self._raw)
        terminal.write(descriptor, piece)


async def _typed(command: Command, recording: Unrecorded, has_begun: asyncio.Event, passes_end: bool) -> None:
    stdin = command.stdin
    if stdin is None:
        return

    async def pass_on(piece: bytes) -> None:
        recording.typed(piece)
        await stdin.write(piece)

    # What is answered to it stands in no log then: there nobody can tell errors from output.
    await has_begun.wait()
    with suppress(Disconnected):
        await keyboard.read_all(STDIN, pass_on)
        if passes_end:
            stdin.end()


async def _sized(command: Command, recording: Unrecorded) -> None:
    # One column more first: a program that has drawn its prompt already is told of a change and draws again.
    with suppress(Disconnected):
        if first := terminal.size(STDIN):
            await command.resize(first.columns + 1, first.rows)
        async with aclosing(keyboard.sizes(STDIN)) as sizes:
            async for columns, rows in sizes:
                recording.sized(columns, rows)
                await command.resize(columns, rows)
