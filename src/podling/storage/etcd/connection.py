"""The members of an etcd cluster: each question goes to one of them, and to the next when that one fails.

What etcd needs of gRPC is in `http2.py`: gRPC's library takes Python several times as much of the processor.
Methods are called by their path, so no generated stubs are needed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar, cast
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Body

import podling.storage.etcd.etcd_pb2 as pb
from podling.storage.etcd.http2 import (
    CANCELLED,
    INTERNAL,
    NOT_BEGUN,
    UNAVAILABLE,
    UNKNOWN,
    Ended,
    Http2,
    Message,
    Pong,
    ProtocolError,
    Ready,
)

Answer = TypeVar("Answer", bound=Body)

PORT = 2379
CONNECTED_WITHIN = 2.0
"""Seconds until a member speaks HTTP/2 with who connects."""
ANSWERED_WITHIN = 5
"""Seconds; an etcd that elects a new leader answers within two."""
PING_EVERY, PONG_WITHIN = 10.0, 5.0
"""Seconds: a member that was cut off must be noticed; etcd takes one ping in five seconds."""
OK, DEADLINE_EXCEEDED = 0, 4
FAILED_OVER = frozenset({CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE})
"""Codes of a member that failed; all others are answers."""
NOT_SENT = (NOT_BEGUN, "no leader")
"""In what is said of what no member has begun to do."""


class EtcdError(Exception):
    """A question was not answered; the message says why. `failed`: by a member that failed, so that another
    may answer. `sent`: the member may do what it was asked for, now or later."""

    def __init__(self, message: str, failed: bool) -> None:
        super().__init__(message)
        self.failed = failed
        self.sent = failed and not any(words in message for words in NOT_SENT)


def target(url: str) -> tuple[str, bool]:
    """Host and port of `http://HOST[:PORT]` or `https://…`, and whether it speaks TLS. Raises ValueError with
    what to tell the user."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of an etcd: write http://HOST:PORT or https://HOST:PORT")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r}: a URL of an etcd has a host and a port alone")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or PORT}", parts.scheme == "https"


class Connection:
    """Belongs to the event loop it is made in. `tls` is for members whose URL is https."""

    def __init__(self, urls: Sequence[str], tls: ssl.SSLContext | None = None) -> None:
        self._urls = list(urls)
        self._members = [_Member(url, tls) for url in urls]
        self._at = 0

    async def ask(self, path: str, request: Body, answer: type[Answer]) -> Answer:
        """The answer of one member. Raises EtcdError; the next question goes to the next if it failed."""
        member = self._at
        try:
            link = await self._members[member].link()
            return answer.FromString(await link.ask(path, request.SerializeToString()))
        except (_StatusError, DecodeError) as error:
            raise self._fault(member, error) from error

    async def watch(self, request: pb.WatchCreateRequest) -> AsyncGenerator[pb.WatchResponse]:
        """The answers of a watch as they come, until its member fails. Raises EtcdError."""
        member = self._at
        try:
            link = await self._members[member].link()
            async for answer in link.follow(
                "/etcdserverpb.Watch/Watch", pb.WatchRequest(create=request).SerializeToString()
            ):
                yield pb.WatchResponse.FromString(answer)
        except (_StatusError, DecodeError) as error:
            raise self._fault(member, error) from error

    async def close(self) -> None:
        for member in self._members:
            member.close()
        # Sockets are closed in the loop's next turn, which may be its last.
        await asyncio.sleep(0)

    def _fault(self, member: int, error: _StatusError | DecodeError) -> EtcdError:
        if isinstance(error, DecodeError):
            error = _StatusError(INTERNAL, f"what it says is of no etcd: {error}")
        failed = error.code in FAILED_OVER
        if failed and member == self._at:
            self._at = (member + 1) % len(self._members)
        return EtcdError(f"etcd at {self._urls[member]}: {error}", failed)


class _StatusError(Exception):
    """A status of gRPC that is no success."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why or f"code {code} of gRPC")
        self.code = code


class _Member:
    """Connects when it is first asked, and again when its connection has ended."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        self._authority, is_secure = target(url)
        parts = urlsplit(url)
        self._place = parts.hostname or "", parts.port or PORT
        self._tls = (tls or ssl.create_default_context()) if is_secure else None
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None

    async def link(self) -> _Link:
        """Raises _StatusError: nothing was sent then."""
        if self._link is not None and self._link.takes_more:
            return self._link
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        return await asyncio.shield(self._connecting)

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._link is not None:
            self._link.end("it is closed")

    async def _connect(self) -> _Link:
        """Raises _StatusError."""
        loop, link = asyncio.get_running_loop(), _Link(self._authority, is_secure=self._tls is not None)
        try:
            async with asyncio.timeout(CONNECTED_WITHIN):
                await loop.create_connection(lambda: link, *self._place, ssl=self._tls)
                # Cancelled by the timeout, it could not be told why the link ends.
                await asyncio.shield(link.ready)
        except (OSError, TimeoutError, _StatusError) as error:
            link.end("it was not ready in time")
            why = f"{NOT_BEGUN}: it takes no connection: {str(error) or 'silence'}"
            raise _StatusError(UNAVAILABLE, why) from error
        except asyncio.CancelledError:
            link.end("it is closed")
            raise
        return link

    def _connected(self, task: asyncio.Task[_Link]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._link = task.result()


class _Link(asyncio.Protocol):
    """One connection to a member."""

    def __init__(self, authority: str, *, is_secure: bool) -> None:
        self._http2 = Http2(authority, secure=is_secure)
        self._transport: asyncio.Transport | None = None
        self._answers: dict[int, bytes] = {}
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._followed: dict[int, asyncio.Queue[bytes | _StatusError]] = {}
        self._pinging: asyncio.TimerHandle | None = None
        self._why = ""
        """It has ended, unless it is empty."""
        self._sends = False
        """Will send in the next turn of the loop."""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def takes_more(self) -> bool:
        return not (self._why or self._http2.is_closing)

    async def ask(self, path: str, request: bytes) -> bytes:
        """Raises _StatusError."""
        self._check()
        stream = self._http2.ask(path, request, seconds=ANSWERED_WITHIN)
        asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[stream] = asked
        self._send()

        def late() -> None:
            if not asked.done():
                why = f"no answer within {ANSWERED_WITHIN} s, as of a cluster without a quorum"
                asked.set_exception(_StatusError(DEADLINE_EXCEEDED, why))

        # A timeout of asyncio takes several times as much of the processor.
        silence = asyncio.get_running_loop().call_later(ANSWERED_WITHIN, late)
        try:
            return await asked
        finally:
            silence.cancel()
            if self._asked.pop(stream, None) is not None:
                self._cancel(stream)
            self._answers.pop(stream, None)

    async def follow(self, path: str, request: bytes) -> AsyncGenerator[bytes]:
        """What is answered to what is asked once, until it ends. Raises _StatusError, also at its end."""
        self._check()
        stream = self._http2.ask(path, request)
        heard = self._followed[stream] = asyncio.Queue()
        self._send()
        try:
            while True:
                one = await heard.get()
                if isinstance(one, _StatusError):
                    raise one
                yield one
        finally:
            if self._followed.pop(stream, None) is not None:
                self._cancel(stream)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop are not of this class.
        self._transport = cast(asyncio.Transport, transport)
        self._send()
        self._expect_ping()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._http2.receive(data):
                match event:
                    case Message(stream, content):
                        self._hear(stream, content)
                    case Ended(stream, status, message):
                        self._end_of(stream, status, message)
                    case Ready():
                        if not self.ready.done():
                            self.ready.set_result(None)
                    case Pong():
                        self._expect_ping()
        except ProtocolError as error:
            self.end(str(error))
            return
        self._send()
        if self._http2.is_closing and not (self._asked or self._followed):
            self.end("it closes the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(f"the connection is lost: {exc or 'it was closed'}")

    def end(self, why: str) -> None:
        """Who waits for an answer does not get it any more."""
        if self._why:
            return
        self._why = why
        if self._pinging is not None:
            self._pinging.cancel()
        if self._transport is not None:
            self._transport.abort()
        lost = _StatusError(UNAVAILABLE, why)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(lost)
        if not self.ready.done():
            self.ready.set_exception(lost)
        # Not everybody waits for it.
        self.ready.exception()
        self._asked.clear()
        for heard in self._followed.values():
            heard.put_nowait(lost)
        self._followed.clear()

    def _check(self) -> None:
        """Raises _StatusError."""
        if self._why:
            raise _StatusError(UNAVAILABLE, f"{NOT_BEGUN}: {self._why}")

    def _hear(self, stream: int, content: bytes) -> None:
        if heard := self._followed.get(stream):
            heard.put_nowait(content)
        elif stream in self._asked:
            self._answers[stream] = content

    def _end_of(self, stream: int, status: int, message: str) -> None:
        answer = self._answers.pop(stream, None)
        if asked := self._asked.pop(stream, None):
            if asked.done():
                return
            if status == OK and answer is not None:
                asked.set_result(answer)
            else:
                asked.set_exception(_StatusError(status or INTERNAL, message or "it answers nothing"))
        elif heard := self._followed.pop(stream, None):
            heard.put_nowait(_StatusError(status or UNAVAILABLE, message or "the watch was ended"))

    def _cancel(self, stream: int) -> None:
        if not self._why:
            self._http2.cancel(stream)
            self._send()

    def _send(self) -> None:
        """What is asked for in one turn of the loop is sent at once."""
        if not self._sends:
            self._sends = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self._sends = False
        if self._transport is not None and not self._why and (out := self._http2.take()):
            self._transport.write(out)

    def _expect_ping(self) -> None:
        """After a while ask whether the other side is still there."""
        loop = asyncio.get_running_loop()
        if self._pinging is not None:
            self._pinging.cancel()
        self._pinging = loop.call_later(PING_EVERY, self._ping)

    def _ping(self) -> None:
        self._http2.ping()
        self._send()
        why = f"it answers no ping within {PONG_WITHIN:g} s"
        self._pinging = asyncio.get_running_loop().call_later(PONG_WITHIN, self.end, why)
