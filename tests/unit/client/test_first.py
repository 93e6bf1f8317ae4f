"""The first request of a command: sent by a socket, answered on the loop, and its connection kept."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import pytest

from podling.client import first, kubeconfig
from podling.client.https import HttpsTransport
from podling.client.lines import OfSocket
from podling.client.login import StandingLogin
from podling.client.route import PLAIN, Wire
from podling.client.tls import Pair, Trust, client_tls
from podling.process import early
from podling.process.tls import Reread

if TYPE_CHECKING:
    from unit.client.conftest import Doorman

T = TypeVar("T")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def login() -> StandingLogin:
    return StandingLogin(client_tls(Trust(insecure=True), Pair()), Reread([], lambda: "Bearer x"))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(5)
        yield made


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/base"


def test_it_says_what_all_requests_say(listener: socket.socket, login: StandingLogin) -> None:
    wire = Wire(headers=(("Impersonate-User", "ada"),))
    sent = first.send(url_of(listener), login, wire, "/api", {"a": "b c"})
    assert sent is not None and sent.target == "/base/api?a=b+c"
    peer, _ = listener.accept()
    with peer, sent.connection:
        head, *headers = peer.recv(65536).decode().split("\r\n")
    assert head == "GET /base/api?a=b+c HTTP/1.1"
    assert headers == [
        f"Host: 127.0.0.1:{listener.getsockname()[1]}",
        "User-Agent: podling",
        "Impersonate-User: ada",
        "Authorization: Bearer x",
        "Accept: application/json",
        "Accept-Encoding: gzip",
        "",
        "",
    ]


async def test_its_answer_goes_to_who_asks_for_it(listener: socket.socket, login: StandingLogin) -> None:
    """Once; another request is another, on the same connection if that is free."""
    url = url_of(listener)
    made = HttpsTransport(url, login, first=first.send(url, login, PLAIN, "/api", {}))
    peer, _ = listener.accept()

    def serve() -> list[bytes]:
        with peer:
            asked = [peer.recv(65536)]
            # In pieces, so that the loop has to wait for them.
            peer.sendall(ANSWER[:30])
            peer.sendall(ANSWER[30:])
            asked.append(peer.recv(65536))
            peer.sendall(ANSWER)
        return [one.partition(b" HTTP")[0] for one in asked]

    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(asyncio.to_thread(serve))
        assert (await made.request("GET", "/api", {}, None))[2] == b"ok"
        assert (await made.request("PUT", "/api", {}, b"body"))[2] == b"ok"
        assert await serving == [b"GET /base/api", b"PUT /base/api"]
        # The server has ended it meanwhile.
        again = tasks.create_task(made.request("GET", "/api", {}, None))
        other, _ = await asyncio.to_thread(listener.accept)
        with other:
            other.sendall(ANSWER)
            assert (await again)[2] == b"ok"
    await made.close()


async def test_over_tls_its_connection_is_kept(doorman: Doorman, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server believes its certificate."""
    pair = doorman.authority.client("client", "ada")
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    access = kubeconfig.read(doorman.kubeconfig(user))
    sent = await asyncio.to_thread(access.send_first, "/api", {})
    assert sent is not None and isinstance(sent.connection, ssl.SSLSocket)

    async def refuse(*arguments: object) -> None:
        raise AssertionError("another connection was made")

    monkeypatch.setattr("podling.client.dial.dial", refuse)
    made = access.transport(sent)
    assert (await made.request("GET", "/api", {}, None))[2] == b"come in"
    assert (await made.request("POST", "/api", {}, b"body"))[2] == b"come in"
    assert doorman.who == [("ada", ""), ("ada", "")]
    await made.close()


async def test_nobody_waits_for_a_server_that_does_not_answer(
    listener: socket.socket, login: StandingLogin
) -> None:
    url = url_of(listener)
    made = HttpsTransport(url, login, deadline=0.05, first=first.send(url, login, PLAIN, "/api", {}))
    with pytest.raises(OSError, match="in time"):
        await made.request("GET", "/api", {}, None)
    peer, _ = listener.accept()
    with peer:
        assert peer.recv(65536) and peer.recv(1) == b""
    unasked = HttpsTransport(url, login, first=first.send(url, login, PLAIN, "/api", {}))
    peer, _ = listener.accept()
    await unasked.close()
    with peer:
        assert peer.recv(65536) and peer.recv(1) == b""


async def test_a_socket_that_takes_no_more_is_waited_for() -> None:
    """Much is sent whole, in order, to a peer that reads slowly; it is read as it comes, to the end."""
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    line, much = OfSocket(near, 1), bytes(range(256)) * 4096
    with far:

        def read() -> bytes:
            said = b""
            while len(said) < len(much):
                said += far.recv(10_000)
            return said

        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(asyncio.to_thread(read))
            await line.send(much)
            assert await reading == much
            assert line.is_open()
            waiting = tasks.create_task(line.read(10))
            await asyncio.sleep(0)
            far.sendall(b"x")
            assert await waiting == b"x"
    assert await line.read(10) == b"" and not line.is_open()
    line.close()


def without_loop(work: Coroutine[Any, Any, T]) -> T:
    def refuse(rest: Awaitable[T]) -> NoReturn:
        raise AssertionError("an event loop is needed")

    return early.run(work, refuse)


def test_before_there_is_an_event_loop_requests_are_sent_and_answered(
    listener: socket.socket, login: StandingLogin
) -> None:
    """On the first connection, and on another when the server has ended that."""
    url = url_of(listener)
    asked: list[bytes] = []
    has_ended = threading.Event()

    def serve() -> None:
        for answers in ((ANSWER, ANSWER), (ANSWER,)):
            peer, _ = listener.accept()
            with peer:
                for answer in answers:
                    asked.append(peer.recv(65536).partition(b" HTTP")[0])
                    peer.sendall(answer[:30])
                    peer.sendall(answer[30:])
            has_ended.set()

    async def ask() -> list[bytes]:
        made = HttpsTransport(url, login, first=first.send(url, login, PLAIN, "/api", {}))
        said = [(await made.request("GET", "/api", {}, None))[2]]
        said.append((await made.request("PATCH", "/api", {}, b"{}"))[2])
        has_ended.wait()
        said.append((await made.request("GET", "/other", {}, None))[2])
        await made.close()
        return said

    serving = threading.Thread(target=serve)
    serving.start()
    assert without_loop(ask()) == [b"ok"] * 3
    serving.join()
    assert asked == [b"GET /base/api", b"PATCH /base/api", b"GET /base/other"]


def test_a_server_that_does_not_answer_before_there_is_an_event_loop(
    listener: socket.socket, login: StandingLogin
) -> None:
    url = url_of(listener)
    made = HttpsTransport(url, login, deadline=0.05, first=first.send(url, login, PLAIN, "/api", {}))
    with pytest.raises(OSError, match=rf"^{url}: nothing was heard for 0\.05 seconds"):
        without_loop(made.request("GET", "/api", {}, None))


def test_who_has_to_ask_somebody_else_first_sends_nothing(
    listener: socket.socket, login: StandingLogin, absent_doorman: Doorman
) -> None:
    """A proxy, and a program that logs in."""
    url = url_of(listener)
    through = Wire(proxy=urlsplit("http://127.0.0.1:1"))
    assert first.send(url, login, through, "/api", {}) is None
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true", "interactiveMode": "Never"}
    absent = kubeconfig.read(absent_doorman.kubeconfig({"exec": plugin}, server=url))
    assert absent.send_first("/api", {}) is None


def test_a_server_that_cannot_be_reached_is_named(login: StandingLogin) -> None:
    with pytest.raises(OSError, match=r"^http://127\.0\.0\.1:1: \[Errno 111\]"):
        first.send("http://127.0.0.1:1", login, PLAIN, "/api", {})


def test_what_would_be_another_request_is_not_sent(listener: socket.socket, login: StandingLogin) -> None:
    with pytest.raises(OSError, match="cannot be asked for"):
        first.send(url_of(listener), login, PLAIN, "/api/a b", {})
    with pytest.raises(OSError, match="line break"):
        first.send(url_of(listener), login, Wire(headers=(("Impersonate-User", "a\nb"),)), "/api", {})


async def test_a_server_of_another_authority_is_not_asked(doorman: Doorman) -> None:
    access = kubeconfig.read(doorman.kubeconfig({"token": "secret"}, **{"certificate-authority": None}))
    with pytest.raises(OSError, match="certificate verify failed"):
        await asyncio.to_thread(access.send_first, "/api", {})
    assert not doorman.asked
