"""Logs and watches over a WebSocket, for browsers: the pieces of the body become messages.

A log starts with an empty message, to say that it is there. Its pieces are binary messages, or base64 in text
messages if the client's subprotocol asks for that. A watch sends each event as one text message, and accepts
any one subprotocol.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

import msgspec
from aiohttp import web
from multidict import CIMultiDictProxy

from podling.streaming.driver import Driver
from podling.streaming.negotiation import listed
from podling.streaming.takeover import taken_over
from podling.streaming.websocket.frames import WebSocketCodec, accept_key
from podling.streaming.wire import Answer, Disconnected, ProtocolError

PROTOCOL = "Sec-WebSocket-Protocol"


class Framing(msgspec.Struct, frozen=True):
    """How a piece of the body becomes messages, text or binary."""

    messages: Callable[[bytes], Iterable[bytes]]
    text: bool
    greets: bool


_BINARY = Framing(lambda piece: (piece,), text=False, greets=True)
LOG_FRAMINGS: Mapping[str, Framing] = {
    "": _BINARY,
    "binary.k8s.io": _BINARY,
    "base64.binary.k8s.io": Framing(lambda piece: (base64.b64encode(piece),), text=True, greets=True),
}
EVENTS = Framing(lambda batch: batch.splitlines(keepends=True), text=True, greets=False)


class LogSocket:
    """A log. The subprotocol is the first of the client's that is supported."""

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self._pieces = pieces

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        async with aclosing(self._pieces):
            chosen = next((name for name in _offered(request.headers) or [""] if name in LOG_FRAMINGS), None)
            if chosen is None:
                return web.Response(status=403)
            return await _sent(request, {PROTOCOL: chosen}, self._pieces, LOG_FRAMINGS[chosen])


class WatchSocket:
    def __init__(self, batches: AsyncGenerator[bytes, None]) -> None:
        self._batches = batches

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        async with aclosing(self._batches):
            if not request.headers.get("Origin"):
                return web.Response(status=403)
            offered = _offered(request.headers)
            if len(offered) > 1:
                return web.Response(status=400)
            chosen = {PROTOCOL: offered[0]} if offered else {}
            return await _sent(request, chosen, self._batches, EVENTS)


def _offered(headers: CIMultiDictProxy[str]) -> Sequence[str]:
    return listed(headers, PROTOCOL)


async def _sent(
    request: web.BaseRequest,
    chosen: dict[str, str],
    pieces: AsyncGenerator[bytes, None],
    framing: Framing,
) -> web.StreamResponse:
    """Send all pieces, until the body ends or the client disconnects."""
    key = request.headers.get("Sec-WebSocket-Key", "").strip()
    if request.headers.get("Sec-WebSocket-Version", "").strip() != "13" or not key:
        return web.Response(status=400)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Accept": accept_key(key)}
    messages = _Messages()
    try:
        async with (
            taken_over(request, {**upgrade, **chosen}, messages) as response,
            asyncio.TaskGroup() as tasks,
        ):
            sending = tasks.create_task(messages.send(pieces, framing))
            leaving = tasks.create_task(messages.wait_lost())
            sending.add_done_callback(lambda _: leaving.cancel())
            leaving.add_done_callback(lambda _: sending.cancel())
    except Disconnected:
        return web.Response(status=500)
    return response


class _Messages(Driver):
    """The server's end of a WebSocket that only sends; what the client sends is ignored."""

    def __init__(self) -> None:
        super().__init__()
        self._codec = WebSocketCodec(client=False)

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._codec.receive(data):
                if isinstance(event, Answer):
                    self.say(event.data)
        except ProtocolError:
            self.drop()

    async def send(self, pieces: AsyncGenerator[bytes, None], framing: Framing) -> None:
        try:
            if framing.greets:
                self.say_all(self._codec.message(b"", text=framing.text))
            async for piece in pieces:
                for message in framing.messages(piece):
                    await self.room()
                    self.say_all(self._codec.message(message, text=framing.text))
        except Disconnected:
            # Whoever reads must not take what it has for the whole.
            self.drop()
            return
        self.say(self._codec.close())
        await self.flushed()
        await self.linger()
