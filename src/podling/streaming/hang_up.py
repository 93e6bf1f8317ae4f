"""Whether a peer that is held back is still there.

A transport that does not read is not told of the end of its connection: a client that flooded a container's
input and left would be kept for ever. The kernel knows, whatever lies unread before the end.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable

HELD = 1.0
"""Seconds a peer is held back before it is watched: most are released at once."""
GRACE = 5.0
"""Seconds after a hang-up in which what the peer had said may still be read."""


class HangUpWatch:
    """From its making until `end`; `gone` is called once, if the peer hangs up and is not read from for a
    while.
    """

    def __init__(self, transport: asyncio.BaseTransport, gone: Callable[[], None]) -> None:
        self._transport = transport
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._epoll: select.epoll | None = None
        self._timer = self._loop.call_later(HELD, self._watch)

    def end(self) -> None:
        self._timer.cancel()
        self._unwatch()

    def _watch(self) -> None:
        connection = self._transport.get_extra_info("socket")
        if connection is None or connection.fileno() < 0:
            return
        self._epoll = select.epoll(1)
        self._epoll.register(connection.fileno(), select.EPOLLRDHUP)
        self._loop.add_reader(self._epoll.fileno(), self._hung_up)

    def _unwatch(self) -> None:
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _hung_up(self) -> None:
        self._unwatch()
        self._timer = self._loop.call_later(GRACE, self._gone)
