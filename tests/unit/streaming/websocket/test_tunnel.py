"""SPDY in WebSocket, as kubectl's port-forward speaks it first."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from podling.streaming.websocket.tunnel import TunnelWire
from podling.streaming.wire import Answer, Answered, Data, Ended, Farewell, Opened, ProtocolError

if TYPE_CHECKING:
    from unit.streaming.conftest import Feed

HEADERS = {"streamtype": "data", "port": "80", "requestid": "0"}


def test_a_conversation(feed: Feed) -> None:
    client, server = TunnelWire(client=True), TunnelWire(client=False)
    stream, opening = client.open(HEADERS)
    heard = feed(server, opening + b"".join(client.data(stream, b"GET /")) + client.end(stream))
    reply = b"".join(event.data for event in heard if isinstance(event, Answer))
    assert [e for e in heard if not isinstance(e, Answer)] == [
        Opened(1, HEADERS),
        Data(1, b"GET /"),
        Ended(1),
    ]
    assert feed(client, reply) == [Answered(1)]
    assert feed(client, b"".join(server.data(1, b"200")) + server.end(1)) == [Data(1, b"200"), Ended(1)]


def test_a_farewell_is_said_in_both_protocols() -> None:
    heard = TunnelWire(client=True).receive(TunnelWire(client=False).farewell())
    assert [event for event in heard if isinstance(event, Farewell)] == [
        Farewell(final=False),
        Farewell(final=True),
    ]


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_raise_only_the_declared_error(data: bytes, client: bool) -> None:
    with suppress(ProtocolError):
        TunnelWire(client=client).receive(data)
