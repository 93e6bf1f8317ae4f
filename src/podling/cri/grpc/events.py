"""What happened to containers, from whichever source the runtime has.

Tried in this order; a runtime that does not know a method says UNIMPLEMENTED and the next source is tried:

1. containerd's events service (`containerd_events.py`). First because it is exact: it can be asked whether
   the subscription stands, it tells of memory kills, and every subscriber gets every
   event (docs/decisions/010).
2. CRI GetContainerEvents (`cri_events.py`).
3. Looking again once a second.

A source says RELIST when nothing that happens from then on can be missed by it, so a stream that broke says
RELIST when it is back. Between attempts the waits double from 50 ms to 5 s; a runtime that is down is not
asked at all, gRPC waits for its socket.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from podling.cri.grpc.connection import Connection
from podling.cri.grpc.containerd_events import containerd_events
from podling.cri.grpc.cri_events import cri_events
from podling.cri.interface import EventKind, RuntimeEvent, RuntimeFault
from podling.process.backoff import Backoff

Sleep = Callable[[float], Awaitable[None]]

_RETRY = Backoff(0.05, 5.0)
_RELIST_INTERVAL = 1.0


async def runtime_events(connection: Connection, sleep: Sleep) -> AsyncGenerator[RuntimeEvent, None]:
    """Never ends; raises nothing. `sleep` waits for seconds."""
    sources = [containerd_events, cri_events]
    retries = _RETRY.begin()
    while sources:
        try:
            async with aclosing(sources[0](connection)) as events:
                async for event in events:
                    retries.reset()
                    yield event
        except RuntimeFault as fault:
            if fault.code == "UNIMPLEMENTED":
                del sources[0]
                continue
        await sleep(retries.next())
    while True:
        yield RuntimeEvent(EventKind.RELIST)
        await sleep(_RELIST_INTERVAL)
