"""A connection's bytes, in and out: of asyncio's streams, or of a socket that was connected without asyncio,
whose TLS asyncio could not take over. The socket is there before an event loop is, and needs none.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from podling.client.route import send
from podling.process.early import is_in_loop

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Line(Protocol):
    def is_open(self) -> bool:
        """Whether the server has not ended it."""
        ...

    async def read(self, most: int) -> bytes:
        """What has come; b"" at the end. Raises OSError."""
        ...

    async def send(self, data: bytes) -> None:
        """Raises OSError."""
        ...

    def close(self) -> None: ...

    async def closed(self) -> None: ...


class OfStreams:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def is_open(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def read(self, most: int) -> bytes:
        return await self._reader.read(most)

    async def send(self, data: bytes) -> None:
        send(self._writer, data)

    def close(self) -> None:
        self._writer.transport.abort()

    async def closed(self) -> None:
        await self._writer.wait_closed()


class OfSocket:
    """`patience` is how many seconds the peer may do nothing while there is no event loop; within one, it is
    the caller's."""

    def __init__(self, connection: socket.socket, patience: float) -> None:
        connection.setblocking(False)
        self._patience = patience
        self._socket = connection

    def is_open(self) -> bool:
        # Nothing is to come before the next request but the end; after a ticket of TLS another connection is
        # made.
        come = select.poll()
        come.register(self._socket, select.POLLIN)
        return not come.poll(0)

    async def read(self, most: int) -> bytes:
        return await self._done(lambda: self._socket.recv(most), reads=True)

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[await self._done(lambda: self._socket.send(view), reads=False) :]  # noqa: B023

    def close(self) -> None:
        self._socket.close()

    async def closed(self) -> None: ...

    async def _done(self, act: Callable[[], T], *, reads: bool) -> T:
        while True:
            try:
                return act()
            # TLS may have to read before it can write, and the other way round.
            except ssl.SSLWantReadError:
                await self._ready(reads=True)
            except ssl.SSLWantWriteError:
                await self._ready(reads=False)
            except BlockingIOError:
                await self._ready(reads=reads)

    async def _ready(self, *, reads: bool) -> None:
        if not is_in_loop():
            waiting = select.poll()
            waiting.register(self._socket, select.POLLIN if reads else select.POLLOUT)
            if not waiting.poll(self._patience * 1000):
                raise TimeoutError(f"nothing was heard for {self._patience:g} seconds")
            return
        import asyncio

        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        add, remove = (
            (loop.add_reader, loop.remove_reader) if reads else (loop.add_writer, loop.remove_writer)
        )
        add(self._socket, ready.set)
        try:
            await ready.wait()
        finally:
            remove(self._socket)
