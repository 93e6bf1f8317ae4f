"""A program: a gateway before an API server, which knows its users by bearer tokens.

`token_gateway.py PORT UPSTREAM PKI NODE TOKEN` listens on loopback with the API server's certificate. Who
shows TOKEN is let through as NODE, whose certificate is in PKI, too; everybody else is answered 401.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from contextlib import suppress
from pathlib import Path

REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


class Gateway:
    def __init__(self, upstream: int, pki: Path, node: str, token: str) -> None:
        self._upstream = upstream
        self._token = token
        self._as_node = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._as_node.load_cert_chain(pki / f"node-{node}.crt", pki / f"node-{node}.key")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if f"\r\nAuthorization: Bearer {self._token}\r\n" in head.decode():
                await self._pass(head, reader, writer)
            else:
                writer.write(REFUSED)
                await writer.drain()
        writer.close()

    async def _pass(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, up = await asyncio.open_connection("127.0.0.1", self._upstream, ssl=self._as_node)
        up.write(head)
        await asyncio.gather(splice(reader, up), splice(back, writer))


async def splice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()


async def main(port: int, upstream: int, pki: Path, node: str, token: str) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    server = await asyncio.start_server(Gateway(upstream, pki, node, token).serve, "127.0.0.1", port, ssl=tls)
    os.write(1, b"serving\n")
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5]))
