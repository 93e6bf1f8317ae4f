"""Datagrams and streams, as real clients send them, and as bad ones do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dns.asyncquery
import dns.message
import dns.rcode
import pytest

from podling.dns import server
from podling.dns.answers import Answer
from podling.dns.responder import Unanswered
from podling.dns.server import A_TURN, MOST_OPEN, MOST_STREAMS, Reply, Server, Sockets, sockets_at
from podling.dns.wire import RA
from ports import both_of_one_port
from unit.dns.cluster import usual

HOST = "127.0.0.1"
WEB = "web.default.svc.cluster.local."
QUERY = dns.message.make_query(WEB, "A").to_wire()


class Elsewhere:
    """Whoever is asked for other names: answers when told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Reply]] = []
        self.came = asyncio.Event()

    def __call__(self, asked: Unanswered, client: str, reply: Reply) -> None:
        self.asked.append((str(asked.query.name), client, reply))
        self.came.set()

    async def until(self, count: int) -> None:
        while len(self.asked) < count:
            self.came.clear()
            await self.came.wait()


@asynccontextmanager
async def serving(elsewhere: Elsewhere | None = None) -> AsyncIterator[int]:
    sockets = sockets_at(HOST, 0)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        server = Server(usual().responder, elsewhere or Elsewhere())
        running = tasks.create_task(server.run(sockets))
        yield sockets.port
        running.cancel()


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


async def one_reply(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))


async def test_datagrams_and_streams_are_answered() -> None:
    async with serving() as port:
        query = dns.message.make_query(WEB, "A")
        for ask in (dns.asyncquery.udp, dns.asyncquery.tcp):
            reply = await ask(query, HOST, port=port)
            assert str(reply.answer[0][0]) == "10.96.0.20"


async def test_more_datagrams_than_a_turn_takes_are_all_answered() -> None:
    loop = asyncio.get_running_loop()
    async with serving() as port:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setblocking(False)
            client.connect((HOST, port))
            for number in range(3 * A_TURN):
                client.send(number.to_bytes(2, "big") + QUERY[2:])
            client.send(b"no query")
            said = {(await loop.sock_recv(client, 512))[:2] for _ in range(3 * A_TURN)}
            assert len(said) == 3 * A_TURN


async def test_a_stream_answers_all_that_is_asked_at_once_and_ends_with_its_client() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection(HOST, port)
        count = 5 * A_TURN
        for number in range(count):
            writer.write(framed(number.to_bytes(2, "big") + QUERY[2:]))
        said = [await one_reply(reader) for _ in range(count)]
        assert [int.from_bytes(one[:2], "big") for one in said] == list(range(count))
        # A message in single bytes, and one that no reply is due to: the stream ends.
        for byte in framed(QUERY):
            writer.write(bytes((byte,)))
            await writer.drain()
        assert await one_reply(reader)
        writer.write(framed(b"short"))
        assert await reader.read() == b""
        writer.close()


async def test_a_stream_that_asks_much_elsewhere_is_not_read_further() -> None:
    elsewhere = Elsewhere()
    async with serving(elsewhere) as port:
        reader, writer = await asyncio.open_connection(HOST, port)
        outside = dns.message.make_query("example.com.", "A").to_wire()
        writer.write(framed(outside) * (MOST_OPEN + 5) + framed(QUERY))
        await elsewhere.until(MOST_OPEN)
        assert len(elsewhere.asked) == MOST_OPEN
        answered = 0
        while answered < MOST_OPEN + 5:
            await elsewhere.until(answered + 1)
            elsewhere.asked[answered][2](Answer(flags=RA))
            answered += 1
        said = [await one_reply(reader) for _ in range(MOST_OPEN + 6)]
        assert len(said) == MOST_OPEN + 6
        writer.close()


async def test_what_is_asked_elsewhere_is_answered_later_with_the_clients_id() -> None:
    elsewhere = Elsewhere()
    async with serving(elsewhere) as port, asyncio.TaskGroup() as tasks:
        query = dns.message.make_query("example.com.", "A")
        asking = tasks.create_task(dns.asyncquery.udp(query, HOST, port=port))
        await elsewhere.until(1)
        assert elsewhere.asked[0][1] == HOST
        elsewhere.asked[0][2](Answer(rcode=dns.rcode.NXDOMAIN, flags=RA))
        assert (await asking).rcode() == dns.rcode.NXDOMAIN


async def test_streams_beyond_the_limit_are_closed() -> None:
    async with serving() as port:
        streams = [await asyncio.open_connection(HOST, port) for _ in range(MOST_STREAMS)]
        for reader, writer in streams:
            writer.write(framed(QUERY))
            assert await one_reply(reader)
        reader, further = await asyncio.open_connection(HOST, port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            further.write(framed(QUERY))
            await one_reply(reader)
        for _, writer in (*streams, (reader, further)):
            writer.close()


def test_a_stream_that_asks_nothing_is_closed(in_no_time) -> None:  # type: ignore[no-untyped-def]
    async def story() -> None:
        sockets = sockets_at(HOST, 0)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(Server(usual().responder, Elsewhere()).run(sockets))
            with socket.create_connection((HOST, sockets.port)) as client:
                client.setblocking(False)
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
            running.cancel()

    in_no_time(story())


def test_the_next_port_is_taken_if_one_is_not_free() -> None:
    first = sockets_at(HOST, 0)
    second = sockets_at(HOST, first.port, 0)
    assert second.port not in (0, first.port)
    with pytest.raises(OSError, match="in use"):
        sockets_at(HOST, first.port)
    first.close()
    second.close()


def test_a_port_that_the_kernel_chose_for_tcp_and_udp_has_taken_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tcp, udp = both_of_one_port(HOST)
    tcp.close()
    chosen = iter([udp.getsockname()[1], 0])
    monkeypatch.setattr(server, "Sockets", lambda address, port: Sockets(address, next(chosen)))
    with udp:
        sockets_at(HOST, 0).close()
    assert next(chosen, None) is None


def test_an_address_that_is_not_there_yet_can_be_listened_on() -> None:
    sockets_at("192.0.2.77", 0).close()
