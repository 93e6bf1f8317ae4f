"""A way to all API servers of a cluster at one place of this machine: TCP connections are passed on to one
that takes them, so clients that know one server go on when it dies.

The server that took the last connection is asked first. Connections that are open stay where they are; one
whose server vanished ends within a minute, and its client makes another. One that ends before its server has
said anything goes on at the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from podling.client.route import keep_alive, send

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
        said = bytearray()
        """By the client while no server has answered: the next is told it, too."""
        for place in tuple(self.servers):
            try:
                async with asyncio.timeout(CONNECT_WITHIN):
                    answers, asks = await asyncio.open_connection(*place)
            except (OSError, TimeoutError) as error:
                self._pass_over(place, f"takes no connection: {error or 'silence'}")
                continue
            keep_alive(asks.get_extra_info("socket"))
            passing = _Passing(said)
            try:
                send(asks, said)
                async with asyncio.TaskGroup() as both:
                    both.create_task(passing.ask(reader, asks))
                    both.create_task(passing.answer(answers, writer))
            except* OSError:
                # Either end is gone, and so is the other for who is left.
                pass
            finally:
                asks.transport.abort()
            if passing.is_done:
                return
            # One that dies takes connections for some moments more.
            self._pass_over(place, "has ended a connection without a word")

    def _pass_over(self, place: Place, why: str) -> None:
        """The next connection goes to another first."""
        log.warning("the API server at %s:%s %s", *place, why)
        self.servers = [*(one for one in self.servers if one != place), place]


class _Passing:
    """A connection of a client at one server. `is_done`: it cannot go on at another."""

    def __init__(self, said: bytearray) -> None:
        self._said = said
        self.is_done = False

    async def ask(self, reader: asyncio.StreamReader, asks: asyncio.StreamWriter) -> None:
        """Raises OSError at the end."""
        while piece := await reader.read(PIECE):
            if not self.is_done:
                self._said += piece
                self.is_done = len(self._said) > PIECE
            send(asks, piece)
            await asks.drain()
        self.is_done = True
        # TLS ends with the connection: nothing more is expected from the other side.
        raise ConnectionResetError("the client has ended")

    async def answer(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises OSError at the end."""
        while piece := await answers.read(PIECE):
            self.is_done = True
            send(writer, piece)
            await writer.drain()
        raise ConnectionResetError("the server has ended")
