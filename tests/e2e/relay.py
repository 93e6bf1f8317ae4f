"""A way to a server that is cut again and again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from podling.process.waits import each


@dataclass
class Relay:
    """Each connection ends after `limit` bytes of the server's, without a farewell, until `left` have been.
    `cut` counts them."""

    host: str
    server_port: int
    limit: int
    left: int
    port: int = 0
    cut: int = 0
    ready: threading.Event = field(default_factory=threading.Event)

    async def serve(self, end: asyncio.Event) -> None:
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await end.wait()
        server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, self.server_port)

        async def outward() -> None:
            with suppress(OSError):
                while piece := await reader.read(65536):
                    far_writer.write(piece)
                    await far_writer.drain()
            far_writer.close()

        async def inward() -> None:
            passed = 0
            with suppress(OSError):
                while piece := await far_reader.read(4096):
                    writer.write(piece)
                    await writer.drain()
                    passed += len(piece)
                    if passed > self.limit and self.left:
                        self.left, self.cut = self.left - 1, self.cut + 1
                        writer.transport.abort()
                        break
            writer.close()

        await each([outward(), inward()])


@contextmanager
def relay(host: str, port: int, limit: int, times: int) -> Iterator[Relay]:
    """While the block runs."""
    made = Relay(host, port, limit, times)
    with asyncio.Runner() as runner:
        loop, end = runner.get_loop(), asyncio.Event()
        thread = threading.Thread(target=lambda: runner.run(made.serve(end)))
        thread.start()
        assert made.ready.wait(10)
        try:
            yield made
        finally:
            loop.call_soon_threadsafe(end.set)
            thread.join()
