"""A way to a server on loopback that a test can cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from peer.control_plane import HOST

PIECE = 64 * 1024


class Link:
    """A way to a server that can be cut: `up` is whether it leads there. A `deaf` one carries what is asked
    and loses the answers. `delay` is how many seconds each piece takes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._carriers: set[asyncio.Task[None]] = set()
        self.up, self.deaf, self.delay = True, False, 0.0
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Link]:
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        self.up = False
        for task in self._carriers:
            task.cancel()

    def mend(self) -> None:
        self.up, self.deaf, self.delay = True, False, 0.0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._carriers.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            if not self.up:
                return
            back, there = await asyncio.open_connection(HOST, self._port)
            with suppress(OSError):
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._carry(reader, there, answers=False))
                    both.create_task(self._carry(back, writer, answers=True))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._carriers.discard(task)
            writer.close()
            if there:
                there.close()

    async def _carry(self, come: asyncio.StreamReader, go: asyncio.StreamWriter, *, answers: bool) -> None:
        is_lost = False
        while piece := await come.read(PIECE):
            await asyncio.sleep(self.delay)
            # Once bytes were lost, none that follow may come: it would be a gap that no connection has.
            is_lost = is_lost or (answers and self.deaf)
            if not is_lost:
                go.write(piece)
                await go.drain()
        raise ConnectionResetError
