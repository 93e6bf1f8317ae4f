"""An API server as clients found it before WebSockets were served everywhere: a proxy in front of a real one
that refuses them in the words of Go's old library, and lets all else through, SPDY among it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proxy import ended, pass_on

HEAD_END = b"\r\n\r\n"
REFUSAL = b"HTTP/1.1 403 Forbidden" + HEAD_END


@contextmanager
def old_server(kubeconfig: Path, directory: Path) -> Iterator[tuple[Path, list[str]]]:
    """A kubeconfig for it, and the protocols it was asked to upgrade to."""
    command = ["kubectl", "--kubeconfig", str(kubeconfig), "config", "view", "--raw", "-o", "json"]
    config: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    behind = config["clusters"][0]["cluster"]
    user = config["users"][0]["user"]
    context = ssl.create_default_context(cadata=_data(behind, "certificate-authority").decode())
    if pair := b"".join(_data(user, kind) for kind in ("client-certificate", "client-key")):
        (directory / "pair.pem").write_bytes(pair)
        context.load_cert_chain(directory / "pair.pem")
    token = f"Authorization: Bearer {user['token']}\r\n".encode() if "token" in user else b""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(HEAD_END)
            lines = {name.lower(): value.strip() for name, _, value in _headers(head)}
            protocol = lines.get("upgrade", "")
            if protocol:
                asked.append(protocol)
            if protocol == "websocket":
                writer.write(REFUSAL)
                writer.close()
                return
            at = urlsplit(behind["server"])
            there, to_there = await asyncio.open_connection(at.hostname, at.port, ssl=context)
            first, _, rest = head.partition(b"\r\n")
            # One request a connection, so that each gets the token.
            ending = b"" if protocol else b"Connection: close\r\n"
            to_there.write(first + b"\r\n" + token + ending + rest)
            await asyncio.gather(pass_on(reader, to_there), pass_on(there, writer))

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    behind_us = {
        "name": "old",
        "cluster": {"server": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"},
    }
    only = {"name": "old", "context": {"cluster": "old"}}
    made = directory / "old.conf"
    made.write_text(json.dumps({"clusters": [behind_us], "contexts": [only], "current-context": "old"}))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield made, asked
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(ended(loop))
        loop.close()


def _data(entry: dict[str, str], kind: str) -> bytes:
    """What a kubeconfig has in itself or in a file; empty if neither."""
    if f"{kind}-data" in entry:
        return base64.b64decode(entry[f"{kind}-data"])
    return Path(entry[kind]).read_bytes() if kind in entry else b""


def _headers(head: bytes) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:]]
