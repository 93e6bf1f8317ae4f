"""`Splice`: joins two connections. Bytes that arrive on either are written to the other unparsed, as fast as
the slower end takes them.
"""

from __future__ import annotations

import asyncio

from podling.streaming.driver import Driver


class Splice(Driver):
    """One end. `Splice.pair()` makes both; each is then given its transport, in any order. If it
    `is_half_open`, an end that has sent all still receives, as if the two were one connection of TCP."""

    def __init__(self, *, is_half_open: bool = False) -> None:
        super().__init__()
        self._is_half_open, self._has_sent_all = is_half_open, False
        self._other: Splice = self
        self._early: list[bytes] = []
        self._over = asyncio.Event()

    @staticmethod
    def pair(*, is_half_open: bool = False) -> tuple[Splice, Splice]:
        one, two = (Splice(is_half_open=is_half_open) for _ in range(2))
        one._other, two._other = two, one
        two._over = one._over
        return one, two

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.say_all(self._early)
        self._early.clear()
        if self._other._has_sent_all:
            self._end_writing()

    def data_received(self, data: bytes) -> None:
        if self._other._transport is None:
            self._other._early.append(data)
        else:
            self._other.say(data)

    def eof_received(self) -> bool:
        """Returns whether the transport stays open for the other direction."""
        self._has_sent_all = self._is_half_open
        if not self._is_half_open or self._other._has_sent_all:
            return False
        self._other._end_writing()
        return True

    def _end_writing(self) -> None:
        if self._transport is not None and self.usable:
            self._transport.write_eof()

    def pause_writing(self) -> None:
        self._other.hold_peer()

    def resume_writing(self) -> None:
        self._other.release_peer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._over.set()
        self._other.close()

    async def done(self) -> None:
        """Returns when both ends are closed. Bytes in flight to the end that is closed last are sent
        first."""
        await self._over.wait()
        await self.gone()
        await self._other.gone()
