"""Node ports at loopback, with real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from podling.network import listeners, loopback
from podling.network.loopback import LoopbackPorts
from podling.network.services import Behind, Frontend
from podling.process.waits import Backoff
from ports import free_port

HOSTS = {"IPv4": "127.0.0.1", "IPv6": "::1"}
HAS_IPV6 = Path("/proc/net/if_inet6").exists() and "lo" in Path("/proc/net/if_inet6").read_text()
FAMILIES = ["IPv4", pytest.param("IPv6", marks=pytest.mark.skipif(not HAS_IPV6, reason="no ::1 here"))]


def leading_to(*ports: int, family: str = "IPv4", affinity: int = 0) -> Behind:
    backends = tuple((HOSTS[family], port) for port in ports)
    return Behind(("default", "web"), "http", "outside", backends, affinity=affinity)


@asynccontextmanager
async def running(*families: str) -> AsyncIterator[LoopbackPorts]:
    ports = LoopbackPorts(families or ("IPv4",))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(ports.run())
        await asyncio.sleep(0)
        yield ports
        task.cancel()


@asynccontextmanager
async def server(name: str, family: str = "IPv4") -> AsyncIterator[int]:
    """Answers with its name and all that a client has sent, once the client has sent all; yields its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name.encode() + await reader.read())
        writer.close()

    made = await asyncio.start_server(answer, HOSTS[family], 0)
    async with made:
        yield made.sockets[0].getsockname()[1]


async def asked(port: int, said: bytes = b"", family: str = "IPv4") -> bytes:
    """Once somebody listens."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(HOSTS[family], port)
        except ConnectionRefusedError:
            await asyncio.sleep(0)
            continue
        try:
            writer.write(said)
            writer.write_eof()
            return await reader.read()
        finally:
            writer.close()


async def until_refused(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            continue  # The last that was let in.
        writer.close()
        await asyncio.sleep(0)


async def until(holds: Callable[[], bool]) -> None:
    while True:
        if holds():
            return
        await asyncio.sleep(0)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_stream_is_passed_on_whole_and_each_end_may_end_first(family: str) -> None:
    port = free_port()
    async with running(family) as ports, server("one", family) as to:
        ports.put(Frontend(family, "tcp", port), leading_to(to, family=family))
        much = bytes(range(256)) * 20_000
        assert await asked(port, much, family) == b"one" + much


async def test_a_port_is_open_while_there_are_endpoints_and_connections_live_on() -> None:
    port = free_port()
    frontend = Frontend("IPv4", "tcp", port)
    async with running() as ports, server("one") as one, server("two") as two:
        ports.put(frontend, leading_to(one))
        assert await asked(port) == b"one"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ports.put(frontend, leading_to(two))
        assert await asked(port) == b"two"
        ports.put(frontend, leading_to())
        await until_refused(port)
        writer.write_eof()
        assert await reader.read() == b"one"
        writer.close()
        ports.put(frontend, leading_to(one))
        assert await asked(port) == b"one"
        ports.put(frontend, None)
        await until_refused(port)


async def test_clients_stay_with_an_endpoint_under_affinity() -> None:
    port = free_port()
    async with running() as ports, server("one") as one, server("two") as two:
        ports.put(Frontend("IPv4", "tcp", port), leading_to(one, two))
        while {await asked(port) for _ in range(20)} != {b"one", b"two"}:
            pass
        ports.put(Frontend("IPv4", "tcp", port), leading_to(one, two, affinity=60))
        (kept,) = {await asked(port) for _ in range(20)}
        ports.put(Frontend("IPv4", "tcp", port), leading_to(two if kept == b"one" else one, affinity=60))
        assert await asked(port) == (b"two" if kept == b"one" else b"one")


async def test_an_endpoint_that_refuses_resets_the_client() -> None:
    port = free_port()
    async with running() as ports:
        ports.put(Frontend("IPv4", "tcp", port), leading_to(free_port()))
        with pytest.raises(ConnectionResetError):
            await asked(port)


async def test_only_so_many_connections_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "MOST", 1)
    port = free_port()
    async with running() as ports, server("one") as one:
        ports.put(Frontend("IPv4", "tcp", port), leading_to(one))
        assert await asked(port) == b"one"
        await until(lambda: not ports._connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            await asked(port)
        writer.write_eof()
        assert await reader.read() == b"one"
        writer.close()


async def test_a_port_that_a_process_has_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Until that is gone. It may be another podling, whose service has the same node port."""
    monkeypatch.setattr(listeners, "AGAIN", Backoff(0.001, 0.001))
    port = free_port()
    async with running() as ports, server("one") as one:
        with socket.create_server(("127.0.0.1", port)):
            ports.put(Frontend("IPv4", "tcp", port), leading_to(one))
            await until(lambda: bool(caplog.messages))
        assert await asked(port) == b"one"
    (told,) = caplog.messages
    assert told.startswith(f"process {os.getpid()} (")
    assert told.endswith(f") has 127.0.0.1, TCP port {port}: its clients are not led to the service")


@contextmanager
def echo(name: str, family: str = "IPv4") -> Iterator[int]:
    """Answers datagrams with its name and what they said; yields its port."""
    kind = socket.AF_INET6 if family == "IPv6" else socket.AF_INET
    with socket.socket(kind, socket.SOCK_DGRAM) as own:
        own.bind((HOSTS[family], 0))
        loop = asyncio.get_running_loop()

        def answer() -> None:
            data, client = own.recvfrom(100)
            own.sendto(name.encode() + data, client)

        loop.add_reader(own, answer)
        yield own.getsockname()[1]
        loop.remove_reader(own)


class Sender:
    """Sends datagrams from one socket, each until it is answered."""

    def __init__(self, port: int, family: str = "IPv4") -> None:
        self._own = socket.socket(socket.AF_INET6 if family == "IPv6" else socket.AF_INET, socket.SOCK_DGRAM)
        self._own.setblocking(False)
        self._own.connect((HOSTS[family], port))

    async def ask(self, said: bytes) -> bytes:
        while True:
            try:
                self._own.send(said)
                async with asyncio.timeout(0.2):
                    return await asyncio.get_running_loop().sock_recv(self._own, 100)
            except (ConnectionRefusedError, TimeoutError):
                await asyncio.sleep(0)

    def close(self) -> None:
        self._own.close()


@pytest.mark.parametrize("family", FAMILIES)
async def test_datagrams_follow_the_endpoints(family: str) -> None:
    port = free_port()
    frontend = Frontend(family, "udp", port)
    async with running(family) as ports:
        with echo("one", family) as one, echo("two", family) as two:
            ports.put(frontend, leading_to(one, family=family))
            first, second = Sender(port, family), Sender(port, family)
            assert await first.ask(b"a") == b"onea"
            # Another client has its own answers.
            assert await second.ask(b"b") == b"oneb"
            ports.put(frontend, leading_to(two, family=family))
            assert await first.ask(b"c") == b"twoc"
            first.close()
            second.close()


async def test_only_so_many_clients_of_datagrams_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has been silent longest is forgotten, and may come again."""
    monkeypatch.setattr(loopback, "MOST", 2)
    port = free_port()
    async with running() as ports:
        with echo("one") as one:
            ports.put(Frontend("IPv4", "udp", port), leading_to(one))
            senders = [Sender(port) for _ in range(5)]
            for sender in (*senders, *senders):
                assert await sender.ask(b"x") == b"onex"
            assert len(ports._clients) == 2
            for sender in senders:
                sender.close()
