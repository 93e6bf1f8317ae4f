"""A way to all API servers of a cluster at one place of this machine: TCP connections are passed on to one
that takes them, so clients that know one server go on when it dies.

The server that took the last connection is asked first. Connections that are open stay where they are; one
whose server vanished ends within a minute, and its client makes another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from podling.client.route import keep_alive

CONNECT_WITHIN = 2.0
"""Seconds until a server that does not take a connection is passed over."""
PIECE = 64 * 1024

Place = tuple[str, int]
"""Address and port."""

log = logging.getLogger(__name__)


class Balancer:
    def __init__(self, servers: Sequence[Place]) -> None:
        self.servers: Sequence[Place] = servers
        """Where the API servers are; may be replaced at any time."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Place]:
        """Takes connections while the block runs, on loopback; where."""
        passing: set[asyncio.Task[None]] = set()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            passing.add(task)
            try:
                with suppress(OSError):
                    await self._pass_on(reader, writer)
            finally:
                writer.transport.abort()
                passing.discard(task)

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        try:
            host, port = server.sockets[0].getsockname()
            yield host, port
        finally:
            server.close()
            for task in tuple(passing):
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises OSError."""
        for place in tuple(self.servers):
            try:
                async with asyncio.timeout(CONNECT_WITHIN):
                    answers, asks = await asyncio.open_connection(*place)
            except (OSError, TimeoutError) as error:
                log.warning("the API server at %s:%s takes no connection: %s", *place, error or "silence")
                # The next connection goes to another first.
                self.servers = [*(one for one in self.servers if one != place), place]
                continue
            keep_alive(asks.get_extra_info("socket"))
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_copy(reader, asks))
                    both.create_task(_copy(answers, writer))
            except* OSError:
                # Either end is gone, and so is the other for who is left.
                pass
            finally:
                asks.transport.abort()
            return


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one ends; its end is passed on, too."""
    while piece := await reader.read(PIECE):
        writer.write(piece)
        await writer.drain()
    # TLS ends with the connection: nothing more is expected from the other side.
    raise ConnectionResetError("it has ended")
