"""A small real proxy on loopback: HTTP's CONNECT, with TLS or without, and SOCKS 5, all on one port."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

SOCKS, PASSWORD, NOBODY = b"\x05", b"\x02", b"\x00"
PIECE = 64 * 1024


@dataclass
class Proxy:
    """`login` is the user and password it wants; `goes_to` leads every name to this machine. `asked` are the
    places and who asked, as `user:password@host:port`. `refuses` hears everybody and lets nobody through."""

    login: str = ""
    goes_to: str = "127.0.0.1"
    refuses: bool = False
    port: int = 0
    asked: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            begin = await reader.readexactly(1)
            through = self._socks if begin == SOCKS else self._connect
            port = await through(begin, reader, writer)
            if port is not None:
                there, to_there = await asyncio.open_connection(self.goes_to, port)
                await asyncio.gather(pass_on(reader, to_there), pass_on(there, writer))
        writer.close()

    async def _connect(
        self, begin: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> int | None:
        first, *lines = (begin + await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, place, _ = first.split()
        headers = dict(line.split(": ", 1) for line in lines if line)
        _, _, shown = headers.get("Proxy-Authorization", "").partition(" ")
        user = base64.b64decode(shown).decode()
        self.asked.append(f"{user}@{place}" if user else place)
        if self.refuses or method != "CONNECT" or user != self.login:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return None
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return int(place.rpartition(":")[2])

    async def _socks(
        self, _: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> int | None:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        wanted = PASSWORD if self.login or (self.refuses and PASSWORD[0] in methods) else NOBODY
        user = ""
        writer.write(SOCKS + (wanted if wanted in methods else b"\xff"))
        if wanted not in methods:
            return None
        if wanted == PASSWORD:
            await reader.readexactly(1)
            words = [await reader.readexactly((await reader.readexactly(1))[0]) for _ in range(2)]
            user = b":".join(words).decode()
            is_known = user == self.login or self.refuses
            writer.write(b"\x01" + (b"\x00" if is_known else b"\x01"))
            if not is_known:
                return None
        kind = (await reader.readexactly(4))[3]
        length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2), "big")
        name = host.decode() if kind == 3 else ".".join(map(str, host))
        self.asked.append(f"{user}@{name}:{port}" if user else f"{name}:{port}")
        # The address of its own end says nothing to its client: here it is a name.
        writer.write(b"\x05" + (b"\x02" if self.refuses else b"\x00") + b"\x00\x03\x04here\x00\x50")
        return None if self.refuses else port


@contextmanager
def running(proxy: Proxy, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """In a thread, for tests without a loop."""
    loop = asyncio.new_event_loop()
    listening = proxy.listening(tls)
    loop.run_until_complete(listening.__aenter__())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(listening.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(ended(loop))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def ended(loop: asyncio.AbstractEventLoop) -> None:
    """Whoever is still connected is let go of, or it is found unclosed in some later test."""
    serving = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)
    await asyncio.sleep(0)


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What comes from the one, to the other, until it ends."""
    try:
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                writer.write(piece)
                await writer.drain()
        writer.close()
    except asyncio.CancelledError:
        # The loop ends before a farewell of TLS could.
        writer.transport.abort()
        raise
