"""`Splice`: joins two connections. Bytes that arrive on either are written to the other unparsed, as fast as
the slower end takes them.
"""

from __future__ import annotations

import asyncio

from podling.streaming.driver import Driver


class Splice(Driver):
    """One end. `Splice.pair()` makes both; each is then given its transport, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._other: Splice = self
        self._early: list[bytes] = []
        self._over = asyncio.Event()

    @staticmethod
    def pair() -> tuple[Splice, Splice]:
        one, two = Splice(), Splice()
        one._other, two._other = two, one
        two._over = one._over
        return one, two

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.say_all(self._early)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._other._transport is None:
            self._other._early.append(data)
        else:
            self._other.say(data)

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
