"""A command over a WebSocket of whichever protocol the server chooses of those that were offered: v5, or v4
of servers before Kubernetes 1.30.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podling.client import kubeconfig
from podling.remote.streams import WEBSOCKET, Ended, Wanted, attach
from podling.streaming.session import Session, Stream
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire

SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
EXITED = b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}'


@asynccontextmanager
async def server(directory: Path, chosen: str) -> AsyncIterator[tuple[kubeconfig.Access, list[str]]]:
    """An API server, and what it was offered. It says back what is typed, in capitals."""
    offered: list[str] = []
    sessions: list[Session] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        offered.extend(line for line in head.splitlines() if line.startswith("Sec-WebSocket-Protocol"))
        writer.write(SWITCHING + f"Sec-WebSocket-Protocol: {chosen}\r\n\r\n".encode())
        if chosen not in WEBSOCKET:
            writer.close()
            return
        session = Session(ChannelWire(SUBPROTOCOLS[chosen], client=False))
        sessions.append(session)
        writer.transport.set_protocol(session)
        session.connection_made(writer.transport)
        opened: dict[str, Stream] = {}
        while {"error", "stdin", "stdout"} - opened.keys():
            stream = await session.accept()
            assert stream is not None
            opened[stream.headers["streamtype"]] = stream
        said = await opened["stdin"].read()
        await opened["stdout"].write(said.upper())
        await opened["error"].write(EXITED)
        await session.finish()

    serving = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = serving.sockets[0].getsockname()[1]
    file = directory / "config"
    file.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]}}"
    )
    yield kubeconfig.read(file), offered
    serving.close()
    for session in sessions:
        session.close()
        await session.wait_lost()


@pytest.mark.parametrize("chosen", WEBSOCKET)
async def test_what_the_server_chooses_is_spoken(chosen: str, tmp_path: Path) -> None:
    async with asyncio.timeout(20), server(tmp_path, chosen) as (access, offered):
        wanted = Wanted(stdin=True, stderr=False)
        command = await attach(access.transport(), "/attach", [], wanted)
        assert command.stdin and command.stdout
        await command.stdin.write(b"words")
        assert await command.stdout.read() == b"WORDS"
        assert await command.ended() == Ended(7)
        await command.close()
    assert offered == ["Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io"]


@pytest.mark.parametrize("chosen", ["v3.channel.k8s.io", ""])
async def test_what_was_not_offered_is_refused(chosen: str, tmp_path: Path) -> None:
    async with asyncio.timeout(20), server(tmp_path, chosen) as (access, _):
        with pytest.raises(OSError, match=f'the server chose the protocol "{chosen}", which was not offered'):
            await attach(access.transport(), "/attach", [], Wanted())
