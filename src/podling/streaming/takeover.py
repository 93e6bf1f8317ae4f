"""The server's side of an upgrade: answer 101 through aiohttp, then take the transport over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from aiohttp import web

from podling.streaming.driver import Driver, receive_much
from podling.streaming.wire import Disconnected


class _Tail:
    """Takes the place of aiohttp's WebSocket parser, to get the bytes that aiohttp had already read behind
    the request."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        """Nothing waits for it."""


@asynccontextmanager
async def taken_over(
    request: web.BaseRequest, headers: Mapping[str, str], driver: Driver
) -> AsyncIterator[web.StreamResponse]:
    """Yields the response to return from the handler, with the transport handed to `driver`. The connection
    is closed at the end of the block. Raises Disconnected."""
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    await response.prepare(request)
    transport = request.transport
    if transport is None or transport.is_closing():
        raise Disconnected("the client is gone")
    tail = _Tail()
    request.protocol.set_parser(cast(Any, tail))
    driver.serves_client = True
    receive_much(transport.get_extra_info("socket"))
    transport.set_protocol(driver)
    driver.connection_made(transport)
    if tail.data:
        driver.data_received(tail.data)
    try:
        yield response
    finally:
        driver.drop()
        # Told only now: aiohttp cancels the handler of a lost connection, and this one is not lost before its
        # driver says so.
        request.protocol.connection_lost(None)
