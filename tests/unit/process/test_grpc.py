"""Asking a peer of gRPC: a real server of gRPC's library, which is not what asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from podling.process.grpc import Peer, StatusError
from podling.process.http2 import DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE

LARGEST = 1000


class Server:
    """`/s/Say` answers as many bytes as it is asked for, `/s/Count` so many messages, `/s/Wait` nothing."""

    def __init__(self, path: Path) -> None:
        self._server = grpc.aio.server()
        handlers = {
            "Say": grpc.unary_unary_rpc_method_handler(self._say),
            "Count": grpc.unary_stream_rpc_method_handler(self._count),
            "Wait": grpc.unary_unary_rpc_method_handler(self._wait),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", handlers),))
        self._server.add_insecure_port(f"unix://{path}")
        self.patience: list[float | None] = []
        """Seconds until each call is given up, as it says."""
        self.headers: list[dict[str, Any]] = []
        self.waits, self.given_up = asyncio.Event(), asyncio.Event()

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace: float | None = None) -> None:
        await self._server.stop(grace)

    async def _say(self, request: bytes, context: Any) -> bytes:
        self.patience.append(context.time_remaining())
        self.headers.append(dict(context.invocation_metadata()))
        return bytes(int(request))

    async def _count(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for number in range(int(request)):
            yield str(number).encode()

    async def _wait(self, request: bytes, context: Any) -> bytes:
        self.waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up.set()
        return b""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "grpc.sock"


@pytest.fixture
async def server(path: Path) -> AsyncIterator[Server]:
    server = Server(path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def peer(path: Path) -> AsyncIterator[Peer]:
    loop = asyncio.get_running_loop()
    peer = Peer(
        "localhost",
        lambda link: loop.create_unix_connection(link, str(path)),
        connects_within=5,
        largest=LARGEST,
    )
    yield peer
    await peer.close()


async def test_a_peer_is_told_how_long_it_is_waited_for_and_who_asks(server: Server, peer: Peer) -> None:
    link = await peer.link()
    assert await link.ask("/s/Say", b"3") == bytes(3)
    await link.ask("/s/Say", b"3", (("user-agent", "prober"), ("namespace", "ns")), seconds=30)
    await link.ask("/s/Say", b"3", seconds=float(2**31))
    never, soon, late = server.patience
    assert never is None and soon is not None and late is not None
    assert 0 < soon <= 30 < late
    assert server.headers[0]["user-agent"] == "podling"
    assert (server.headers[1]["user-agent"], server.headers[1]["namespace"]) == ("prober", "ns")


async def test_who_is_asked_too_long_is_given_up_and_told(server: Server, peer: Peer) -> None:
    link = await peer.link()
    with pytest.raises(StatusError, match="context deadline exceeded") as raised:
        await link.ask("/s/Wait", b"", seconds=0)
    assert raised.value.code == DEADLINE_EXCEEDED
    assert await link.ask("/s/Say", b"1") == bytes(1)


async def test_a_call_that_nobody_waits_for_any_more_is_cancelled(server: Server, peer: Peer) -> None:
    link = await peer.link()
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(link.ask("/s/Wait", b""))
        await server.waits.wait()
        asked.cancel()
    await server.given_up.wait()
    assert await link.ask("/s/Say", b"1") == bytes(1)


async def test_an_answer_that_is_too_large_is_refused_and_the_connection_stays(
    server: Server, peer: Peer
) -> None:
    link = await peer.link()
    assert len(await link.ask("/s/Say", str(LARGEST).encode())) == LARGEST
    with pytest.raises(StatusError, match="1001 bytes is larger than 1000") as raised:
        await link.ask("/s/Say", str(LARGEST + 1).encode())
    assert raised.value.code == RESOURCE_EXHAUSTED
    assert await peer.link() is link
    assert len(await link.ask("/s/Say", b"10")) == 10


async def test_many_answers_end(server: Server, peer: Peer) -> None:
    link = await peer.link()
    async with link.follow("/s/Count", b"3") as answers:
        assert [answer async for answer in answers] == [b"0", b"1", b"2"]
        assert answers.ended
    with pytest.raises(StatusError) as raised:
        async with link.follow("/s/None", b"") as answers:
            await anext(answers)
    assert raised.value.code == 12


async def test_a_peer_that_went_is_found_again(server: Server, peer: Peer, path: Path) -> None:
    link = await peer.link()

    async def waiting() -> None:
        with pytest.raises(StatusError) as raised:
            await link.ask("/s/Wait", b"")
        assert raised.value.code == UNAVAILABLE

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waiting())
        await server.waits.wait()
        await server.stop()
    with pytest.raises(StatusError, match="not begun: it takes no connection"):
        await peer.link()
    other = Server(path)
    await other.start()
    assert await (await peer.link()).ask("/s/Say", b"2") == bytes(2)
    await other.stop()


async def test_who_asks_at_once_shares_a_connection(server: Server, peer: Peer) -> None:
    links = await asyncio.gather(*(peer.link() for _ in range(10)))
    assert len(set(links)) == 1
    assert await asyncio.gather(*(links[0].ask("/s/Say", b"5") for _ in range(50))) == [bytes(5)] * 50


async def test_a_connection_that_is_made_just_as_its_peer_is_closed_is_closed(
    server: Server, peer: Peer
) -> None:
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(10):
        asking = tasks.create_task(peer.link())
        while peer._connecting is None or not peer._connecting.done():  # noqa: ASYNC110
            await asyncio.sleep(0)
        await peer.close()
    assert not asking.result().takes_more


async def test_a_connection_that_takes_no_more_is_closed_with_the_others(
    server: Server, peer: Peer, path: Path
) -> None:
    link = await peer.link()

    async def waiting() -> None:
        with pytest.raises(StatusError, match="it is closed"):
            await link.ask("/s/Wait", b"")

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(waiting())
        await server.waits.wait()
        stopping = tasks.create_task(server.stop(60))
        while link.takes_more:  # noqa: ASYNC110
            await asyncio.sleep(0)
        path.unlink(missing_ok=True)
        other = Server(path)
        await other.start()
        assert await peer.link() is not link
        await peer.close()
        await stopping
    await other.stop()
