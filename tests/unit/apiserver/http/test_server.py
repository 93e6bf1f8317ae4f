"""The way from sockets to the pipeline and back, over real loopback connections."""

from __future__ import annotations

import asyncio
import email
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding
from yarl import URL

from client_certificates import CN, Attribute, Shape, read_signer, write
from client_certificates import authority as issuing
from podling.apiserver.http import connections
from podling.apiserver.http.connections import Connection
from podling.apiserver.http.server import (
    LARGE,
    LONGEST_REST,
    PIECE,
    Writers,
    _Whole,
    head_of,
    listening,
    tls_context,
    write_delay,
)
from podling.apiserver.request.request import Request
from podling.apiserver.request.response import Response
from podling.machine.pki import Authority
from podling.model.errors import StatusError
from podling.streaming.wire import Disconnected


class Echo:
    """A pipeline that says what it heard."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.closed = asyncio.Event()
        self.ended = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        if request.path == "/refused":
            return Response(403, b"no", "text/plain")
        if request.read is not None:
            request.body = await request.read()
        match request.path:
            case "/stream":
                return Response(200, self._stream())
            case "/half":
                return Response(200, self._half())
            case "/upgrade":
                return Response(101, Takeover())
            case "/large":
                return Response(200, bytes(3 * LARGE))
        return Response(200, f"{request.method} {request.path}?{request.query}".encode(), "text/plain")

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"first\n"
            await self.ended.wait()
            yield b"last\n"
        finally:
            self.closed.set()

    async def _half(self) -> AsyncGenerator[bytes, None]:
        yield b"first\n"
        raise Disconnected("the one who has the rest is gone")


KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
)


class Takeover:
    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        connection = request.transport.get_extra_info("socket")
        asked = [connection.getsockopt(*option) for option in KEEP_ALIVE]
        return web.Response(status=418, text=f"taken over from {request.method}, asked {asked}")


@asynccontextmanager
async def serving(echo: Echo, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    async with listening(echo.handle, "127.0.0.1", 0, tls, end_streams=echo.ended.set) as port:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_request_arrives_as_it_was_sent(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        target = URL(f"{url}/api/a%3Ab?x=%2C&y", encoded=True)
        answer = await session.post(target, data=b"body", headers={"X-Y": "z"})
        assert await answer.text() == "POST /api/a%3Ab?x=%2C&y"
    (request,) = echo.requests
    assert request.body == b"body" and request.headers.get("x-y") == "z" and request.certificate is None
    assert request.remote == "127.0.0.1"


async def conversation(url: str, *requests: str) -> list[bytes]:
    """What a client that says all this at once is answered until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write("".join(f"{request}\r\nHost: x\r\n\r\n" for request in requests).encode())
    async with asyncio.timeout(10):
        heard = await reader.read()
    writer.close()
    return heard.split(b"HTTP/1.")[1:]


LAST = "GET / HTTP/1.1\r\nConnection: close"


@pytest.mark.parametrize(("path", "size"), [("/", len("GET /?")), ("/large", 3 * LARGE)])
async def test_an_answer_is_whole_and_the_connection_kept_where_it_may(path: str, size: int) -> None:
    async with serving(Echo()) as url:
        kept = await conversation(url, f"GET {path} HTTP/1.1", LAST)
        closed = await conversation(url, f"GET {path} HTTP/1.1\r\nConnection: close")
        old = await conversation(url, f"GET {path} HTTP/1.0")
    assert (len(kept), len(closed), len(old)) == (2, 1, 1)
    for answer in (kept[0], closed[0], old[0]):
        head, _, body = answer.partition(b"\r\n\r\n")
        headers = email.message_from_bytes(head.partition(b"\r\n")[2])
        assert (headers["Content-Length"], len(body)) == (str(size), size)
        assert parsedate_to_datetime(headers["Date"]).tzinfo is UTC


@pytest.mark.parametrize("path", ["/", "/upgrade"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_no_answer_says_what_program_gave_it(path: str, version: str) -> None:
    async with serving(Echo()) as url:
        (answer,) = await conversation(url, f"GET {path} HTTP/{version}\r\nConnection: close")
    assert b"server:" not in answer.lower()


@pytest.mark.parametrize(
    "request_",
    [
        "\x16\x03\x01 hello",
        "GET / HTTP/1.1\r\n bad\x00: y",
        "POST / HTTP/1.1\r\nContent-Length: x",
        "GET http://[::1 HTTP/1.1",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz",
    ],
)
async def test_what_is_not_http_is_refused_and_fills_no_log(
    request_: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Echo()) as url:
        (answer,) = await conversation(url, request_)
    assert answer.split()[1] == b"400" and b"\r\nserver:" not in answer.lower()
    assert caplog.records == []


async def test_an_error_of_the_program_is_logged(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Request) -> Response:
        raise LookupError(request.path)

    async with listening(fail, "127.0.0.1", 0, None, end_streams=lambda: None) as port:
        assert (await session.get(f"http://127.0.0.1:{port}/here")).status == 500
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [LookupError]


async def test_a_body_stays_as_it_was_sent(session: aiohttp.ClientSession) -> None:
    """As Go has it: what claims to be packed is not unpacked, and may be anything."""
    echo = Echo()
    async with serving(echo) as url:
        headers = {"Content-Encoding": "gzip"}
        assert (await session.post(url, data=b"not gzip", headers=headers)).status == 200
    assert echo.requests[0].body == b"not gzip"


async def test_a_long_answer_is_written_a_piece_a_turn() -> None:
    """Encrypting takes the loop's time, and the kernel may take megabytes without anybody waiting."""
    written: list[tuple[int, bytes]] = []
    turns = 0

    class Connection:
        @property
        def writer(self) -> Connection:
            return self

        transport = writer

        def is_closing(self) -> bool:
            return False

        def write(self, data: bytes) -> None:
            written.append((turns, bytes(data)))

        async def drain(self) -> None:
            """The kernel has taken it."""

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    turn()
    body = bytes(range(256)) * (4 * PIECE // 256) + b"end"
    await _Whole(b"head", body, b"\n").prepare(Connection())  # type: ignore[arg-type]
    assert b"".join(data for _, data in written) == b"head" + body + b"\n"
    for each in range(turns + 1):
        assert sum(len(data) for at, data in written if at == each) <= PIECE + len(b"head\n")


async def test_the_head_of_an_answer_alone() -> None:
    async with serving(Echo()) as url:
        head, after = await conversation(url, "HEAD /large HTTP/1.1", LAST)
    assert f"Content-Length: {3 * LARGE}".encode() in head and head.endswith(b"\r\n\r\n")
    assert after.endswith(b"GET /?")


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_above_the_limit_is_not_read_on(announced: bool) -> None:
    """Of one that says how long it is not a byte is wanted."""
    errors: list[StatusError] = []

    async def handle(request: Request) -> Response:
        assert request.read is not None
        try:
            await request.read()
        except StatusError as error:
            errors.append(error)
        return Response(413)

    head = "Content-Length: 8388608" if announced else "Transfer-Encoding: chunked"
    body = b"" if announced else b"400000\r\n" + bytes(4 << 20)
    async with listening(handle, "127.0.0.1", 0, None, end_streams=lambda: None) as port:
        async with asyncio.timeout(10):
            heard = await said(port, f"POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + body)
    assert heard.startswith(b"HTTP/1.1 413") and b"\r\nConnection: close\r\n" in heard
    assert [error.code for error in errors] == [413]


async def said(port: int, data: bytes) -> bytes:
    """What a client that says this and no more is answered until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
    heard = b""
    with suppress(ConnectionError):
        while piece := await reader.read(65536):
            heard += piece
    writer.close()
    return heard


PLAIN = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
REFUSED = "POST /refused HTTP/1.1\r\nHost: x\r\n"
NEXT = f"{LAST}\r\nHost: x\r\n\r\n".encode()


async def test_a_body_nobody_wanted_is_thrown_away_and_the_connection_kept() -> None:
    echo = Echo()
    body = SMUGGLED * 10
    async with serving(echo) as url:
        head = f"{REFUSED}Content-Length: {len(body)}\r\n\r\n".encode()
        heard = await said(int(url.rpartition(":")[2]), head + body + NEXT)
    assert heard.count(b"HTTP/1.1") == 2 and b"Connection: close" not in heard.partition(b"GET /?")[0][:200]
    assert [request.path for request in echo.requests] == ["/refused", "/"]
    assert echo.requests[0].body == b""


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Content-Length: 300000", b""),
        ("Content-Length: 300000", SMUGGLED * 8000),
        ("Content-Length: 100\r\nExpect: 100-continue", b""),
        ("Transfer-Encoding: chunked", b"50000\r\n" + SMUGGLED * 9000),
    ],
)
async def test_what_follows_a_body_nobody_wanted_is_no_request(headers: str, body: bytes) -> None:
    """The client is answered at once, and the connection ends, as Go does it."""
    echo = Echo()
    async with serving(echo) as url:
        heard = await said(int(url.rpartition(":")[2]), f"{REFUSED}{headers}\r\n\r\n".encode() + body + NEXT)
    assert heard.startswith(b"HTTP/1.1 403") and heard.count(b"HTTP/1.1") == 1
    assert b"\r\nConnection: close\r\n" in heard and b"100 Continue" not in heard
    assert [request.path for request in echo.requests] == ["/refused"]


async def test_a_long_body_nobody_wanted_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decrypting it would be work that anybody could have the server do."""
    read = 0

    class Counting(Connection):
        __slots__ = ()

        def data_received(self, data: bytes) -> None:
            nonlocal read
            read += len(data)
            super().data_received(data)

    monkeypatch.setattr(connections, "Connection", Counting)
    async with serving(Echo()) as url:
        body = bytes(16 << 20)
        head = f"{REFUSED}Content-Length: {len(body)}\r\n\r\n".encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(head + body)
        heard = await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
    assert heard.startswith(b"HTTP/1.1 403") and read < 1 << 20


@pytest.mark.parametrize("path", ["/%zz", "/a%", "/%2"])
async def test_a_path_with_a_broken_escape_is_no_request(path: str) -> None:
    echo = Echo()
    async with serving(echo) as url:
        (answer,) = await conversation(url, f"GET {path} HTTP/1.1")
    assert answer.startswith(b"1 400 Bad Request\r\n") and answer.endswith(b"\r\n\r\n400 Bad Request")
    assert echo.requests == []


async def test_the_whole_url_may_be_asked_for() -> None:
    echo = Echo()
    async with serving(echo) as url:
        await conversation(url, "GET http://x/c?d HTTP/1.1\r\nConnection: close")
    assert [(request.path, request.query) for request in echo.requests] == [("/c", "d")]


async def test_the_server_itself_may_be_asked_for_its_options() -> None:
    echo = Echo()
    async with serving(echo) as url:
        (answer,) = await conversation(url, "OPTIONS * HTTP/1.1\r\nConnection: close")
    assert answer.startswith(b"1 200 OK\r\n") and b"Content-Length: 0\r\n" in answer
    assert not echo.requests


async def test_a_client_may_ask_before_it_sends(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answer = await session.post(url, data=b"body", expect100=True)
        assert answer.status == 200
    assert echo.requests[0].body == b"body"


async def test_a_stream_is_sent_as_it_comes_and_ends_with_the_server(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answer = await session.get(f"{url}/stream")
        assert await answer.content.readline() == b"first\n"
    assert await answer.content.read() == b"last\n"


@pytest.mark.parametrize(
    ("streams", "size", "seconds"),
    [
        (1, 100, 0.0004),
        (100, 100, 0.04),
        (100, LARGE + 1, 0.0),
        (10_000, 100, LONGEST_REST),
    ],
)
def test_many_streams_rest_between_small_pieces(streams: int, size: int, seconds: float) -> None:
    assert write_delay(bytes(size), streams) == pytest.approx(seconds)


def test_streams_that_have_nothing_to_send_are_not_counted() -> None:
    writers, last = Writers(), [-1] * 100
    for n in range(100):
        last[n] = writers.wrote(7.01, last[n])
    assert writers.count == 100
    # They go on in the next slice, each twice.
    for n in (*range(100), *range(100)):
        last[n] = writers.wrote(7.11, last[n])
        assert writers.count == 100
    # Two of them go on, and then rest for long.
    for time in (7.21, 7.31):
        for n in range(2):
            last[n] = writers.wrote(time, last[n])
    assert writers.count == 2
    writers.wrote(9.0, last[0])
    assert writers.count == 1


async def test_a_stream_does_not_rest_for_those_that_are_silent(
    session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[int] = []

    def noted(piece: bytes, streams: int) -> float:
        delays.append(streams)
        return 0.0

    echo, changes = Echo(), asyncio.Queue[bytes]()

    async def handle(request: Request) -> Response:
        async def changing() -> AsyncGenerator[bytes, None]:
            while True:
                yield await changes.get()

        return Response(200, changing()) if request.path == "/changing" else await echo.handle(request)

    async with listening(handle, "127.0.0.1", 0, None, end_streams=echo.ended.set) as port:
        url = f"http://127.0.0.1:{port}"
        for _ in range(50):
            silent = await session.get(f"{url}/stream")
            assert await silent.content.readline() == b"first\n"
        monkeypatch.setattr("podling.apiserver.http.server.write_delay", noted)
        monkeypatch.setattr("podling.apiserver.http.server.LONGEST_REST", 1e-6)
        changes.put_nowait(b"0\n")
        changing = await session.get(f"{url}/changing")
        for n in range(10):
            assert await changing.content.readline() == b"%d\n" % n
            changes.put_nowait(b"%d\n" % (n + 1))
        changing.close()
    assert delays and set(delays) == {1}


async def test_what_comes_while_a_stream_rests_is_sent_in_order(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answers = [await session.get(f"{url}/stream") for _ in range(5)]
        for answer in answers:
            assert await answer.content.readline() == b"first\n"
        echo.ended.set()
        assert [await answer.content.read() for answer in answers] == [b"last\n"] * 5


async def test_a_stream_is_closed_when_its_reader_goes(session: aiohttp.ClientSession) -> None:
    echo = Echo()
    async with serving(echo) as url:
        answer = await session.get(f"{url}/stream")
        await answer.content.readline()
        answer.close()
        await echo.closed.wait()


async def test_what_breaks_off_is_not_taken_for_the_whole(session: aiohttp.ClientSession) -> None:
    async with serving(Echo()) as url, session.get(f"{url}/half") as answer:
        assert await answer.content.readline() == b"first\n"
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()


async def test_a_connection_is_handed_on(session: aiohttp.ClientSession) -> None:
    async with serving(Echo()) as url:
        answer = await session.post(f"{url}/upgrade")
        assert (answer.status, await answer.text()) == (
            418,
            "taken over from POST, asked [1, 15, 15, 9]",
        ), "a client that has lost its network is missed"


@pytest.fixture
def authority(tmp_path: Path) -> Callable[[str], Authority]:
    return lambda name: Authority(tmp_path / name, datetime.now(UTC))


def client_tls(authority: Authority, user: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca.certificate))
    if user:
        pair = authority.client(user, user, ["group"])
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def test_client_certificates(
    session: aiohttp.ClientSession, authority: Callable[[str], Authority]
) -> None:
    """R-SYS-4: one of ours names the user, none is a stranger, one of another authority gets no answer."""
    ours, other = authority("ours"), authority("other")
    pair = ours.server("server", "server", ["127.0.0.1"])
    echo = Echo()
    async with serving(echo, tls_context(pair.certificate, pair.key, ours.ca.certificate)) as url:
        await session.get(url, ssl=client_tls(ours, "alice"))
        await session.get(url, ssl=client_tls(ours))
        theirs = client_tls(other, "mallory")
        theirs.load_verify_locations(ours.ca.certificate)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url, ssl=theirs)
    alice, stranger = echo.requests
    assert alice.certificate is not None
    assert alice.certificate.subject == ((("organizationName", "group"),), (("commonName", "alice"),))
    assert stranger.certificate is None


async def test_the_chain_of_a_certificate_is_known(
    session: aiohttp.ClientSession, authority: Callable[[str], Authority], tmp_path: Path
) -> None:
    """Through authorities between, which the client sends, up to one of the file, root or not."""
    ours, theirs = authority("ours"), authority("theirs")
    pair = ours.server("server", "server", ["127.0.0.1"])
    root = read_signer(ours.ca.certificate, ours.ca.key)
    between = issuing("between", root)
    trusted = issuing("trusted", read_signer(theirs.ca.certificate, theirs.ca.key))
    (tmp_path / "trusted.crt").write_bytes(trusted.certificate.public_bytes(Encoding.PEM))
    shape, echo = Shape([[Attribute(CN, "alice")]]), Echo()
    tls = tls_context(pair.certificate, pair.key, ours.ca.certificate, tmp_path / "trusted.crt")
    async with serving(echo, tls) as url:
        for signers in ([root, between], [trusted]):
            write(shape, signers, tmp_path / "alice")
            client = client_tls(ours)
            client.load_cert_chain(tmp_path / "alice.crt", tmp_path / "alice.key")
            await session.get(url, ssl=client)
    shown = [one.certificate for one in echo.requests if one.certificate is not None]
    chains = [one.issuers for one in shown]
    wanted = [[between, root], [trusted]]
    ends = [min(one.certificate.not_valid_after_utc for one in chain) for chain in wanted]
    assert all(one.lifetime.ends <= end for one, end in zip(shown, ends, strict=True))
    der = [tuple(one.certificate.public_bytes(Encoding.DER) for one in chain) for chain in wanted]
    assert chains == der


async def test_bytes_of_a_header_that_are_no_text_become_text() -> None:
    """What is answered and written down of a request is JSON."""
    echo = Echo()
    async with serving(echo) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", URL(url).port)
        # All text before, nothing but text with it, nothing but text behind it.
        for piece in (
            PLAIN,
            b"GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: \xc3\xa4",
            b"\xe4\r\n",
            b"\r\n" + PLAIN,
        ):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        while len(echo.requests) < 3:
            await reader.readline()
        writer.close()
    assert [one.headers.get("user-agent") for one in echo.requests] == [None, "ä\ufffd", None]


async def test_a_client_is_given_one_ticket_to_come_back_with(authority: Callable[[str], Authority]) -> None:
    ours = authority("ours")
    pair = ours.server("server", "server", ["127.0.0.1"])
    tls = tls_context(pair.certificate, pair.key, ours.ca.certificate)
    assert tickets(tls, client_tls(ours, "alice")) == 1


def tickets(server: ssl.SSLContext, client: ssl.SSLContext) -> int:
    """How many a server sends after the handshake: each is a record of its own."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for end in (asking, answering, asking):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert not to_client.pending
    answering.do_handshake()
    sent, records = to_client.read(), 0
    while sent:
        sent, records = sent[5 + int.from_bytes(sent[3:5], "big") :], records + 1
    return records


async def test_a_port_in_use(session: aiohttp.ClientSession) -> None:
    async with serving(Echo()) as url:
        with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
            async with listening(
                Echo().handle, "127.0.0.1", int(url.rpartition(":")[2]), None, end_streams=lambda: None
            ):
                pass


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b"])
def test_no_header_begins_another_line(value: str) -> None:
    head = head_of(Response(404, b"", "text/plain", {"A": "b", "Warning": "é"}), 3).decode().split("\r\n")
    assert head[0] == "HTTP/1.1 404 Not Found" and head[-2:] == ["", ""]
    assert {"A: b", "Warning: é", "Content-Type: text/plain", "Content-Length: 3"} < set(head)
    with pytest.raises(ValueError, match="line break"):
        head_of(Response(200, headers={"A": value, "B": "c"}), 0)


async def test_who_does_not_read_is_waited_for() -> None:
    """A client that asks and asks without reading an answer makes the server hold a few of them, not all."""
    echo = Echo()
    async with serving(echo) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1)
        asked = 300
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * asked)
        async with asyncio.timeout(10):
            await reader.readexactly(1)
            for _ in range(10_000):
                await asyncio.sleep(0)
        assert 0 < len(echo.requests) < asked / 2
        writer.transport.abort()
