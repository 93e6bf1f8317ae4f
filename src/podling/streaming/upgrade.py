"""The client's side of an HTTP/1.1 upgrade: send the request, then take the connection over or read the
refusal.

It is one request on one fresh connection. HTTP client libraries keep and share connections and cannot give
one away, so the standard library's `http.client` parses the answer.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import ssl
from collections.abc import Iterable
from email.message import Message

import msgspec

from podling.streaming.driver import Connect, Factory, keep_alive
from podling.streaming.wire import Disconnected, ProtocolError

MAX_HEAD = 64 * 1024
MAX_BODY = 1024 * 1024
HEAD_END = b"\r\n\r\n"


class Refused(Exception):
    """The server answered without upgrading; carries status and body."""

    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        super().__init__(f"{status}: {body.decode(errors='replace').strip()}")
        self.status = status
        self.headers = headers
        self.body = body


class Address(msgspec.Struct, frozen=True):
    """A server. `within` connects to a server of this process without the network."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    within: Connect | None = None

    async def connect(self, client: Factory) -> asyncio.Transport:
        """Raises OSError when there is no connection."""
        if self.within is not None:
            return await self.within(client)
        transport, _ = await asyncio.get_running_loop().create_connection(
            client, self.host, self.port, ssl=self.tls, server_hostname=self.server_name
        )
        keep_alive(transport.get_extra_info("socket"))
        return transport


class Upgraded:
    """A connection after its 101. Nothing is read from it until `hand_to`."""

    def __init__(self, transport: asyncio.Transport, headers: Message, rest: bytes) -> None:
        self.headers = headers
        self._transport = transport
        self._rest = rest

    def hand_to(self, protocol: asyncio.Protocol) -> None:
        """The protocol owns the connection from now on, with what was already read of it."""
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._rest:
            protocol.data_received(self._rest)
        if self._transport.is_closing():
            protocol.connection_lost(None)
        else:
            self._transport.resume_reading()

    def drop(self) -> None:
        self._transport.abort()


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if any("\r" in line or "\n" in line for line in lines):
        raise ProtocolError("a line break within a header")
    return "\r\n".join(lines).encode() + HEAD_END


async def upgrade(address: Address, request: bytes) -> Upgraded:
    """Send `request` and take the connection over. Raises Refused, ProtocolError for an answer that is not
    HTTP, OSError when there is no connection."""
    answer = _Answer()
    transport = await address.connect(lambda: answer)
    try:
        transport.write(request)
        return await answer.done
    except BaseException:
        transport.abort()
        raise


class _Answer(asyncio.Protocol):
    """Collects the answer. It stops reading after the head of a 101: the following bytes belong to the next
    protocol."""

    def __init__(self) -> None:
        self.done: asyncio.Future[Upgraded] = asyncio.get_running_loop().create_future()
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self.done.done():
            return
        self._received += data
        try:
            self._look(at_end=False)
        except ProtocolError as error:
            self.done.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.done.done():
            return
        try:
            self._look(at_end=True)
        except ProtocolError as error:
            self.done.set_exception(error)
        if not self.done.done():
            self.done.set_exception(Disconnected("connection closed before an answer"))

    def _look(self, *, at_end: bool) -> None:
        head, found, rest = self._received.partition(HEAD_END)
        if not found:
            if len(head) > MAX_HEAD:
                raise ProtocolError("endless headers")
            return
        status, headers = parse_head(head)
        if status == http.HTTPStatus.SWITCHING_PROTOCOLS:
            assert self._transport is not None
            self._transport.pause_reading()
            self.done.set_result(Upgraded(self._transport, headers, rest))
        elif (body := parse_body(self._received, at_end=at_end)) is not None:
            self.done.set_exception(Refused(status, headers, body))


def parse_head(head: bytes) -> tuple[int, Message]:
    """Status and headers. Raises ProtocolError."""
    line, _, lines = head.partition(b"\r\n")
    words = line.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ProtocolError(f"not an HTTP answer: {line[:80]!r}")
    try:
        return int(words[1]), http.client.parse_headers(io.BytesIO(lines + HEAD_END))
    except http.client.HTTPException as error:
        raise ProtocolError(str(error)) from error


class _Bytes:
    """The one method of a socket that http.client needs."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def parse_body(answer: bytes, *, at_end: bool) -> bytes | None:
    """The body of a complete answer, however its length is given; None while it is incomplete."""
    response = http.client.HTTPResponse(_Bytes(answer))  # type: ignore[arg-type]
    try:
        response.begin()
        body = response.read()
    except http.client.IncompleteRead as part:
        return part.partial if at_end or len(answer) > MAX_BODY else None
    except (http.client.HTTPException, ValueError) as error:
        raise ProtocolError(str(error)) from error
    told = response.length is not None or response.chunked
    return body if told or at_end or len(answer) > MAX_BODY else None
