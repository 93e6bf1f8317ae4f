"""How every codec is fed: whole, byte by byte, with bytes left over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from podling.streaming.session import Session
from podling.streaming.wire import Data, Event, Wire

Feed = Callable[[Wire, bytes], list[Event]]


def joined(events: list[Event]) -> list[Event]:
    """Neighbouring pieces of one stream put together: how data is cut up is no part of its meaning."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, Data) and isinstance(last, Data) and event.stream == last.stream:
            out[-1] = Data(event.stream, last.data + event.data)
        else:
            out.append(event)
    return out


def whole(wire: Wire, data: bytes) -> list[Event]:
    return joined(wire.receive(data))


def byte_by_byte(wire: Wire, data: bytes) -> list[Event]:
    return joined([event for byte in data for event in wire.receive(bytes((byte,)))])


def in_sevens(wire: Wire, data: bytes) -> list[Event]:
    return joined([event for at in range(0, len(data), 7) for event in wire.receive(data[at : at + 7])])


@pytest.fixture(params=[whole, byte_by_byte, in_sevens])
def feed(request: pytest.FixtureRequest) -> Feed:
    fed: Feed = request.param
    return fed


@dataclass
class Connected:
    """Both ends of one connection over loopback."""

    client: Session
    server: Session


Connect = Callable[[Wire, Wire], Awaitable[Connected]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Connects two sessions over a real socket."""
    ended: list[Session] = []

    async def connected(client_wire: Wire, server_wire: Wire) -> Connected:
        loop = asyncio.get_running_loop()
        server = Session(server_wire)
        listener = await loop.create_server(lambda: server, "127.0.0.1", 0)
        _, client = await loop.create_connection(
            lambda: Session(client_wire), *listener.sockets[0].getsockname()
        )
        ended.extend((client, server))
        listener.close()
        return Connected(client, server)

    yield connected
    for session in ended:
        session.drop()
        await session.wait_lost()
