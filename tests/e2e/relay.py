"""A way to a server that is cut again and again."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from podling.process.waits import each

from .clusters import Cluster


@dataclass
class Relay:
    """Each connection ends after `limit` bytes of the server's, without a farewell, until `left` have been.
    `cut` counts them."""

    host: str
    server_port: int
    limit: int
    left: int
    listening: socket.socket
    port: int = 0
    cut: int = 0
    ready: threading.Event = field(default_factory=threading.Event)
    loop: asyncio.AbstractEventLoop | None = None
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, end: asyncio.Event) -> None:
        self.loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._pass_on, sock=self.listening)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await end.wait()
        server.close()
        # Whoever is still connected at the end is let go of, or it is found unclosed in some later test.
        for writer in self.open:
            writer.transport.abort()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    def lose(self) -> None:
        """Every connection there is, at both ends, and all that would come."""

        def cut() -> None:
            self.limit, self.left = 0, sys.maxsize
            for writer in self.open:
                writer.transport.abort()

        assert self.loop
        self.loop.call_soon_threadsafe(cut)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, self.server_port)
        both = {writer, far_writer}
        self.open |= both

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
        self.open -= both


@contextmanager
def relay(
    host: str, port: int, limit: int, times: int, listening: socket.socket | None = None
) -> Iterator[Relay]:
    """While the block runs. `listening` is of another network if clients are there."""
    made = Relay(host, port, limit, times, listening or socket.create_server(("127.0.0.1", 0)))
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


@contextmanager
def through_relay(
    cluster: Cluster,
    directory: Path,
    limit: int = sys.maxsize,
    times: int = 0,
    listening: socket.socket | None = None,
) -> Iterator[tuple[Cluster, Relay]]:
    """The cluster, reached so."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    server = urlsplit(config["clusters"][0]["cluster"]["server"])
    assert server.hostname and server.port
    with relay(server.hostname, server.port, limit, times, listening) as way:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{way.port}"
        config["clusters"][0]["cluster"]["tls-server-name"] = server.hostname
        for user in config["users"]:
            for field_ in ("client-certificate", "client-key"):
                if field_ in user["user"]:
                    user["user"][field_] = str(cluster.kubeconfig.parent / user["user"][field_])
        file = directory / "relayed.conf"
        file.write_text(yaml.safe_dump(config))
        yield Cluster(file, cluster.node), way
