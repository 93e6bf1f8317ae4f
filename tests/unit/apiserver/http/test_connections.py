"""R-SYS-4: a connection that asks for nothing has its time, and there are only so many, over loopback."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import re
import socket
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from podling.apiserver.http import connections as module
from podling.apiserver.http.connections import HEADER_LIMIT, Connections, Limits, is_here, limits_for
from podling.apiserver.http.server import listening, tls_context
from podling.apiserver.request.request import Request
from podling.apiserver.request.response import Response
from podling.machine.pki import Authority
from podling.model.errors import StatusError
from podling.process.waits import OneATurn

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
QUICK = 0.05


class Slow:
    """Answers at once, but what asks for `/wait` when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = asyncio.Event()
        self.bodies: list[bytes] = []

    async def handle(self, request: Request) -> Response:
        if request.path == "/wait":
            self.waiting.set()
            await self.go.wait()
        if request.read is not None:
            self.bodies.append(await request.read())
        return Response(200, request.path.encode(), "text/plain")


class Served(NamedTuple):
    port: int
    slow: Slow
    connections: Connections

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def said(self, *pieces: bytes) -> bytes:
        """What a client is answered until the server ends the connection."""
        reader, writer = await self.connect()
        heard = b""
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            async with asyncio.timeout(10):
                while heard_now := await reader.read(65536):
                    heard += heard_now
        writer.close()
        return heard


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None, **limits: float) -> AsyncIterator[Served]:
    slow, connections = Slow(), Connections(Limits(**limits))  # type: ignore[arg-type]
    async with listening(
        slow.handle, "127.0.0.1", 0, tls, end_streams=slow.go.set, connections=connections
    ) as port:
        yield Served(port, slow, connections)
    for _ in range(3):
        await asyncio.sleep(0)
    assert connections.heads == 0 and not connections._open and not connections._of, "nothing is left over"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - the server tells nobody what it has heard
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("said", "answers"),
    [(b"", []), (b"GET / HTTP/1.1\r\nHo", [b"400"])],
)
async def test_a_head_has_its_time(said: bytes, answers: list[bytes]) -> None:
    """As kube-apiserver answers it after its 32 s."""
    async with serving(head_seconds=QUICK, idle_seconds=10) as served:
        heard = await served.said(said)
    assert re.findall(rb"HTTP/1.1 (\d+)", heard) == answers


async def test_the_head_of_a_second_request_has_its_time() -> None:
    async with serving(head_seconds=QUICK, idle_seconds=10) as served:
        reader, writer = await served.connect()
        writer.write(GET)
        assert (await reader.readuntil(b"\r\n\r\n/")).startswith(b"HTTP/1.1 200")
        writer.write(GET[:5])
        assert (await reader.read()).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        writer.close()


async def test_a_head_that_comes_in_time_is_answered() -> None:
    async with serving(head_seconds=10, idle_seconds=QUICK) as served:
        heard = await served.said(*(bytes([byte]) for byte in GET))
    assert heard.startswith(b"HTTP/1.1 200 OK") and heard.endswith(b"/")


async def test_between_requests_a_connection_rests_so_long() -> None:
    async with serving(head_seconds=10, idle_seconds=QUICK) as served:
        assert (await served.said(GET, GET)).count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize("first", [GET, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"])
async def test_a_method_is_cut_behind_a_request(first: bytes) -> None:
    """Clients that send several requests at once, whose bytes TLS cuts anywhere."""
    async with serving(head_seconds=10, idle_seconds=QUICK) as served:
        for cut in range(1, len(b"GET ")):
            reader, writer = await served.connect()
            writer.write(first + GET[:cut])
            assert (await reader.readuntil(b"\r\n\r\n/")).startswith(b"HTTP/1.1 200")
            writer.write(GET[cut:])
            assert (await reader.readuntil(b"\r\n\r\n/")).startswith(b"HTTP/1.1 200")
            writer.close()


async def test_a_request_with_a_body_leaves_a_connection_its_rest() -> None:
    async with serving(head_seconds=QUICK, idle_seconds=10) as served:
        reader, writer = await served.connect()
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
        assert (await reader.readuntil(b"\r\n\r\n/")).startswith(b"HTTP/1.1 200")
        assert await served.said(b"") == b"", "another one's time has passed meanwhile"
        writer.write(LAST)
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_heads_in_many_pieces_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds that send a byte each at the same time would hold the loop; two pieces are ordinary."""
    waiting: list[module.Connection] = []
    monkeypatch.setattr(Connections, "take_turn", lambda _, connection: waiting.append(connection))
    async with serving() as served:
        reader, writer = await served.connect()
        for pieces, letter in enumerate(b"GET", 1):
            writer.write(bytes([letter]))
            await until(lambda pieces=pieces: served.connections.heads == pieces)  # type: ignore[misc]
            assert len(waiting) == (pieces > module.FEW_PIECES)
        writer.write(LAST[3:])
        assert (await served.said(LAST)).endswith(b"\r\n\r\n/")
        assert served.connections.heads == 3
        waiting[0].go_on()
        assert (await reader.read()).endswith(b"\r\n\r\n/")
        writer.close()


async def test_those_who_wait_for_a_turn_may_leave() -> None:
    async with serving() as served:
        dawdling = [await served.connect() for _ in range(20)]
        for sent, letter in enumerate(b"GET", 1):
            for _, writer in dawdling:
                writer.write(bytes([letter]))
            await until(lambda sent=sent: served.connections.heads == sent * len(dawdling))  # type: ignore[misc]
        for _, writer in dawdling:
            writer.transport.abort()
        await until(lambda: not served.connections.heads)
        assert (await served.said(LAST)).endswith(b"\r\n\r\n/")


async def test_clients_who_queue_are_taken_between_other_things() -> None:
    """One turn of the loop takes one of them, so their handshakes are not all in the next."""
    async with serving() as served:
        clients = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
        taken = []
        while len(served.connections._open) < len(clients):
            taken.append(len(served.connections._open))
            await asyncio.sleep(0)
        assert max(after - before for before, after in itertools.pairwise(taken)) == 1
        for client in clients:
            client.close()


async def test_long_heads_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a piece of a long head a connection is not read until its turn has come; others are."""
    waiting: list[module.Connection] = []
    monkeypatch.setattr(Connections, "take_turn", lambda _, connection: waiting.append(connection))
    async with serving() as served, asyncio.TaskGroup() as tasks:
        long = b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-A: %b\r\n\r\n" % (b"a" * 1_000_000)
        asked = tasks.create_task(served.said(long))
        await until(lambda: len(waiting) == 1)
        assert (await served.said(LAST)).endswith(b"\r\n\r\n/")
        assert len(waiting) == 1 and not asked.done()
        turns = 1
        while not asked.done():
            waiting.pop().go_on()
            await until(lambda: bool(waiting) or asked.done())
            turns += 1
        assert asked.result().endswith(b"/long") and turns > 3


async def test_pieces_of_bodies_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a large piece of a body a connection is not read until its turn has come; others are."""
    # How much the kernel hands over at once is its own affair: when the machine is busy, it is less.
    monkeypatch.setattr(module, "A_PIECE", 1024)
    turns = OneATurn()
    waiting: list[Callable[[], bool]] = []
    monkeypatch.setattr(turns, "call", waiting.append)
    monkeypatch.setattr(module, "long_work", lambda: turns)
    body = b"b" * 2_000_000
    async with serving() as served, asyncio.TaskGroup() as tasks:
        head = b"POST /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(
            body
        )
        asked = tasks.create_task(served.said(head + body))
        await until(lambda: len(waiting) == 1)
        assert (await served.said(LAST)).endswith(b"\r\n\r\n/")
        assert len(waiting) == 1 and not asked.done()
        pieces = 1
        while not asked.done():
            waiting.pop()()
            await until(lambda: bool(waiting) or asked.done())
            pieces += 1
        assert served.slow.bodies == [body] and pieces > 3


async def test_who_waits_for_an_answer_has_all_the_time() -> None:
    async with serving(head_seconds=QUICK, idle_seconds=QUICK) as served:
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(served.said(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"))
            await served.slow.waiting.wait()
            assert await served.said(b"") == b"", "another one's time has passed meanwhile"
            served.slow.go.set()
        assert asked.result().endswith(b"/wait")


@pytest.mark.parametrize("sent", [b"", b"x"])
async def test_a_body_has_its_time(sent: bytes) -> None:
    answers: list[Exception] = []

    async def handle(request: Request) -> Response:
        assert request.read is not None
        try:
            await request.read()
        except Exception as error:
            answers.append(error)
            raise
        return Response(200)

    limits = Limits(body_seconds=QUICK)
    async with listening(
        handle, "127.0.0.1", 0, None, end_streams=lambda: None, connections=Connections(limits)
    ) as port:
        await Served(port, Slow(), Connections()).said(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n" + sent
        )
    (error,) = answers
    assert isinstance(error, StatusError)
    assert (error.code, error.message) == (408, "the body did not arrive within 0.05 seconds")


HEADERS = b"GET / HTTP/1.1\r\nHost: x\r\n"
MUCH = b"a" * 600_000


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEADERS + b"A: " + MUCH + b"\r\nConnection: close\r\n\r\n", b"200"),
        (HEADERS + b"A: " + MUCH + b"\r\nB: " + MUCH + b"\r\n\r\n", b"431"),
        (HEADERS + b"A: " + MUCH + b"\r\nB: " + MUCH, b"431"),
        (b"GET /" + MUCH + MUCH + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
        (HEADERS + b"".join(b"A%d: b\r\n" % n for n in range(2000)) + b"\r\n", b"431"),
        (
            HEADERS + b"Connection: close\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(900)) + b"\r\n",
            b"200",
        ),
    ],
    ids=["long", "too long", "too long and no end", "line", "too many", "many"],
)
async def test_all_headers_together_have_a_bound(head: bytes, status: bytes) -> None:
    async with serving(head_seconds=5) as served:
        heard = await served.said(head)
    assert heard.startswith((b"HTTP/1.1 " + status, b"HTTP/1.0 " + status))
    assert heard.count(b"HTTP/1.") == 1


async def test_nothing_is_kept_of_a_long_url() -> None:
    async with serving() as served:

        async def ask(number: int) -> None:
            url = b"http://x%d/%b" % (number, MUCH)
            assert b" 200 " in (await served.said(LAST.replace(b" / ", b" " + url + b" ")))[:20]
            bad = b"http://x%d:99999/%b" % (number, MUCH)
            await served.said(LAST.replace(b" / ", b" " + bad + b" "))

        await ask(0)
        tracemalloc.start()
        try:
            for number in range(1, 6):
                await ask(number)
            # A client hears the end before the server has let go of the request.
            await until(lambda: not served.connections._open)
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept < len(MUCH)


async def test_a_head_behind_a_request_has_the_same_bound() -> None:
    """While an answer is waited for, what else comes is not kept without end either."""
    async with serving(head_seconds=5) as served:
        reader, writer = await served.connect()
        writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await served.slow.waiting.wait()
        with suppress(ConnectionError):
            writer.write(HEADERS)
            for number in range(2 * HEADER_LIMIT // 65536):
                writer.write(b"A%d: %b\r\n" % (number, b"a" * 65536))
                await writer.drain()
        async with asyncio.timeout(10):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


async def test_the_heads_of_all_together_have_a_bound() -> None:
    part = b"GET / HTTP/1.1\r\nA: " + b"a" * 1000
    async with serving(heads=3000, head_seconds=5) as served:
        others = [await served.connect() for _ in range(2)]
        for _, writer in others:
            writer.write(part)
        await until(lambda: served.connections.heads > 2000)
        assert (await served.said(part)).startswith(b"HTTP/1.1 431")
        assert (await served.said(LAST)).startswith(b"HTTP/1.1 200")
        for _, writer in others:
            writer.close()


async def test_the_longest_without_a_request_makes_room() -> None:
    """Whoever waits for an answer keeps his connection, and a new client gets one."""
    async with serving(connections=3) as served:
        busy, says = await served.connect()
        says.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await served.slow.waiting.wait()
        idle = [await served.connect() for _ in range(6)]
        async with asyncio.timeout(10):
            assert await idle[0][0].read() == b""
            assert (await served.said(LAST)).endswith(b"/")
            assert len(served.connections._open) <= 3
            served.slow.go.set()
            assert (await busy.read(1000)).endswith(b"/wait")
        for _, writer in [(busy, says), *idle]:
            writer.close()


async def test_one_address_has_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_here", lambda address, own: False)
    async with serving(per_address=2) as served:
        first = [await served.connect() for _ in range(2)]
        for _, writer in first:
            writer.write(GET)
        for reader, _ in first:
            assert (await reader.read(1000)).startswith(b"HTTP/1.1 200")
        assert await served.said(GET) == b""
        first[0][1].close()
        await first[0][1].wait_closed()
        await until(lambda: len(served.connections._open) == 1)
        assert (await served.said(LAST)).endswith(b"/")
        first[1][1].close()


@pytest.mark.parametrize(
    ("address", "here"), [("127.0.0.9", True), ("::1", True), ("10.0.0.1", True), ("10.0.0.2", False)]
)
def test_who_is_on_this_machine(address: str, here: bool) -> None:
    assert is_here(address, "10.0.0.1") is here


async def test_a_handshake_has_its_time_and_makes_room(tmp_path: Path) -> None:
    authority = Authority(tmp_path, datetime.now(UTC))
    pair = authority.server("server", "server", ["127.0.0.1"])
    tls = tls_context(pair.certificate, pair.key, authority.ca.certificate)
    async with serving(tls, head_seconds=0.1) as served:
        assert await served.said(b"") == b""
    async with serving(tls, head_seconds=60, connections=2) as served:
        silent = [await served.connect() for _ in range(5)]
        async with asyncio.timeout(10):
            assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_a_machine_without_descriptors_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0)
    loop = asyncio.get_running_loop()
    accept, faults = loop.sock_accept, [OSError(errno.EMFILE, "Too many open files")]

    async def scarce(listener: socket.socket) -> object:
        if faults:
            raise faults.pop()
        return await accept(listener)

    monkeypatch.setattr(loop, "sock_accept", scarce)
    async with serving() as served:
        assert (await served.said(LAST)).endswith(b"/")
    assert "no connection can be taken" in caplog.text


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(1 << 20, 10_000), (4096, 1536), (1024, 384), (256, 96)]
)
def test_descriptors_are_kept_back(descriptors: int, connections: int) -> None:
    assert limits_for(descriptors).connections == connections
