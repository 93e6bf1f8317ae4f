"""The client's side of an HTTP/1.1 upgrade: send the request, then take the connection over or read the
refusal.

It is one request on one fresh connection. HTTP client libraries keep and share connections and cannot give
one away.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping

import msgspec

from podling.process import http_client
from podling.process.http_client import SWITCHING, AnswerReader, Head, Incomplete, Malformed
from podling.streaming.driver import Connect, Factory, keep_alive
from podling.streaming.wire import Disconnected, ProtocolError

MAX_BODY = 1024 * 1024


class Refused(Exception):
    """The server answered without upgrading; carries status and body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
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

    def __init__(self, transport: asyncio.Transport, headers: Mapping[str, str], rest: bytes) -> None:
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
    """Raises ProtocolError for what would be more than one header, or another request."""
    try:
        return http_client.request_head(method, target, headers)
    except Malformed as error:
        raise ProtocolError(str(error)) from error


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
        self._answer = AnswerReader()
        self._head: Head | None = None
        self._body = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._come(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._come(b"")

    def _come(self, data: bytes) -> None:
        if self.done.done():
            return
        self._answer.receive(data)
        try:
            while not self.done.done() and (event := self._answer.next()) is not None:
                if isinstance(event, Head):
                    self._begun(event)
                elif isinstance(event, bytes) and len(self._body) <= MAX_BODY:
                    self._body += event
                else:
                    self._refused()
        except Incomplete:
            # What it says of itself is worth more than that it did not come to its end.
            if self._head is None:
                self.done.set_exception(Disconnected("connection closed before an answer"))
            else:
                self._refused()
        except Malformed as error:
            self.done.set_exception(ProtocolError(str(error)))

    def _begun(self, head: Head) -> None:
        self._head = head
        if head.status == SWITCHING:
            assert self._transport is not None
            self._transport.pause_reading()
            self.done.set_result(Upgraded(self._transport, head.headers, self._answer.rest()))

    def _refused(self) -> None:
        assert self._head is not None
        self.done.set_exception(Refused(self._head.status, self._head.headers, bytes(self._body)))
