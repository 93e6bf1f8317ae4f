"""A peer that speaks gRPC, asked on the event loop: a message for a message, or one for many.

What clients need of gRPC is in `http2.py`: gRPC's library has threads that never rest, and takes Python
several times as much of the processor. Methods are called by their path, so no generated stubs are needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

from podling.process.http2 import (
    DEADLINE_EXCEEDED,
    INTERNAL,
    NOT_BEGUN,
    OK,
    UNAVAILABLE,
    WINDOW,
    Ended,
    Headers,
    Http2,
    Message,
    Pong,
    ProtocolError,
    Ready,
)

NAMES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
"""Of gRPC's codes, by their numbers."""
PONG_WITHIN = 5.0
"""Seconds."""
Dial = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Connects the protocol that it is given. Raises OSError."""


class StatusError(Exception):
    """A status of gRPC that is no success."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why or f"code {code} of gRPC")
        self.code = code
        self.name = NAMES[code] if code < len(NAMES) else "UNKNOWN"


class Peer:
    """Connects when it is first asked, and again when its connection has ended.

    It has `connects_within` seconds to speak HTTP/2. It is asked `ping_every` so many whether it is still
    there; None is for a peer whose end the kernel tells. No message may have more than `largest` bytes, and
    no connection may bring more than `most` altogether: for a peer that is a stranger.
    """

    def __init__(
        self,
        authority: str,
        dial: Dial,
        *,
        connects_within: float,
        secure: bool = False,
        ping_every: float | None = None,
        largest: int = WINDOW,
        most: int | None = None,
    ) -> None:
        self._dial = dial
        self._connects_within = connects_within
        self._link_of: Callable[[], Link] = lambda: Link(
            Http2(authority, secure=secure, largest=largest), ping_every, most
        )
        self._links: list[Link] = []
        """The last one is asked; those before it may still answer what they were asked."""
        self._connecting: asyncio.Task[Link] | None = None

    async def link(self) -> Link:
        """Raises StatusError: nothing was sent then."""
        if self._links and self._links[-1].takes_more:
            return self._links[-1]
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        return await asyncio.shield(self._connecting)

    async def close(self) -> None:
        if (connecting := self._connecting) is not None:
            connecting.cancel()
            # It may have connected just now.
            await asyncio.wait([connecting])
        for link in self._links:
            link.end("it is closed")
        # Sockets are closed in the loop's next turn, which may be its last.
        await asyncio.sleep(0)

    async def _connect(self) -> Link:
        """Raises StatusError."""
        link = self._link_of()
        try:
            async with asyncio.timeout(self._connects_within):
                await self._dial(lambda: link)
                # Cancelled by the timeout, it could not be told why the link ends.
                await asyncio.shield(link.ready)
        except (OSError, TimeoutError, StatusError) as error:
            link.end("it was not ready in time")
            why = f"{NOT_BEGUN}: it takes no connection: {str(error) or 'silence'}"
            raise StatusError(UNAVAILABLE, why) from error
        except asyncio.CancelledError:
            link.end("it is closed")
            raise
        return link

    def _connected(self, task: asyncio.Task[Link]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._links = [*(link for link in self._links if not link.has_ended), task.result()]


class Link(asyncio.Protocol):
    """One connection to a peer."""

    def __init__(self, http2: Http2, ping_every: float | None, most: int | None) -> None:
        self._http2 = http2
        self._ping_every = ping_every
        self._most = most
        """Bytes that may come yet; None for any number."""
        self._transport: asyncio.Transport | None = None
        self._answers: dict[int, bytes] = {}
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._followed: dict[int, Followed] = {}
        self._pinging: asyncio.TimerHandle | None = None
        self._why = ""
        """It has ended, unless it is empty."""
        self._sends = False
        """Will send in the next turn of the loop."""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def has_ended(self) -> bool:
        return bool(self._why)

    @property
    def takes_more(self) -> bool:
        return not (self.has_ended or self._http2.is_closing)

    async def ask(
        self, path: str, request: bytes, headers: Headers = (), *, seconds: float | None = None
    ) -> bytes:
        """The answer, which the peer is given so many `seconds` for. Raises StatusError."""
        self._check()
        stream = self._http2.ask(path, request, headers, seconds=seconds)
        asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[stream] = asked
        self._send()

        def late() -> None:
            if not asked.done():
                asked.set_exception(StatusError(DEADLINE_EXCEEDED, "context deadline exceeded"))

        # A timeout of asyncio takes several times as much of the processor.
        silence = None if seconds is None else asyncio.get_running_loop().call_later(seconds, late)
        try:
            return await asked
        finally:
            if silence is not None:
                silence.cancel()
            if self._asked.pop(stream, None) is not None:
                self._cancel(stream)
            self._answers.pop(stream, None)

    @asynccontextmanager
    async def follow(
        self, path: str, request: bytes, headers: Headers = (), *, more_follows: bool = False
    ) -> AsyncGenerator[Followed]:
        """What is answered to what is asked once. Raises StatusError."""
        self._check()
        stream = self._http2.ask(path, request, headers, more_follows=more_follows)
        followed = self._followed[stream] = Followed()
        self._send()
        try:
            yield followed
        finally:
            if self._followed.pop(stream, None) is not None:
                self._cancel(stream)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop are not of this class.
        self._transport = cast(asyncio.Transport, transport)
        self._send()
        self._expect_ping()

    def data_received(self, data: bytes) -> None:
        if self._most is not None:
            self._most -= len(data)
            if self._most < 0:
                self.end("it sends more than is wanted of it")
                return
        try:
            for event in self._http2.receive(data):
                match event:
                    case Message(stream, content):
                        if followed := self._followed.get(stream):
                            followed.hear(content)
                        elif stream in self._asked:
                            self._answers[stream] = content
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
        lost = StatusError(UNAVAILABLE, why)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(lost)
        if not self.ready.done():
            self.ready.set_exception(lost)
        # Not everybody waits for it.
        self.ready.exception()
        self._asked.clear()
        for followed in self._followed.values():
            followed.end(lost)
        self._followed.clear()

    def _check(self) -> None:
        """Raises StatusError."""
        if self._why:
            raise StatusError(UNAVAILABLE, f"{NOT_BEGUN}: {self._why}")

    def _end_of(self, stream: int, status: int, message: str) -> None:
        answer = self._answers.pop(stream, None)
        if asked := self._asked.pop(stream, None):
            if asked.done():
                return
            if status == OK and answer is not None:
                asked.set_result(answer)
            else:
                asked.set_exception(StatusError(status or INTERNAL, message or "it answers nothing"))
        elif followed := self._followed.pop(stream, None):
            followed.end(StatusError(status, message) if status else None)

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
        if self._pinging is not None:
            self._pinging.cancel()
        if self._ping_every is not None:
            self._pinging = asyncio.get_running_loop().call_later(self._ping_every, self._ping)

    def _ping(self) -> None:
        self._http2.ping()
        self._send()
        why = f"it answers no ping within {PONG_WITHIN:g} s"
        self._pinging = asyncio.get_running_loop().call_later(PONG_WITHIN, self.end, why)


class Followed:
    """Messages as they come, until the peer ends them; raises StatusError if its status is no success."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[bytes | StatusError | None] = asyncio.Queue()
        self.ended = False

    def hear(self, message: bytes) -> None:
        self._heard.put_nowait(message)

    def end(self, error: StatusError | None) -> None:
        self.ended = True
        self._heard.put_nowait(error)

    def __aiter__(self) -> Followed:
        return self

    async def __anext__(self) -> bytes:
        one = await self._heard.get()
        if one is None:
            raise StopAsyncIteration
        if isinstance(one, StatusError):
            raise one
        return one
