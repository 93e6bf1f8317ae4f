"""What happened to containers, from whichever source the runtime has.

Tried in this order; a runtime that does not know a method says UNIMPLEMENTED and the next source is tried:

1. containerd's events service (`containerd_events.py`). First because it is exact: it can be asked whether
   the subscription stands, it tells of memory kills, and every subscriber gets every
   event (docs/decisions/010).
2. CRI GetContainerEvents, for other runtimes. The method sends nothing until something happens, so a query is
   sent after it: once that is answered the runtime has read both, and the stream is taken to be established.
3. Looking again once a second.

A source says RELIST when nothing that happens from then on can be missed by it, so a stream that broke says
RELIST when it is back. Between attempts the waits double from 50 ms to 1 s; to a runtime that is down, an
attempt is a connection that the kernel refuses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.connection import Connection
from podling.cri.grpc.containerd_events import containerd_events
from podling.cri.interface import EventKind, RuntimeEvent, RuntimeFault
from podling.process.waits import Backoff

Sleep = Callable[[float], Awaitable[None]]

_SERVICE = "/runtime.v1.RuntimeService/"
_RELIST = RuntimeEvent(EventKind.RELIST)
_RETRY = Backoff(0.05, 1.0)
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
        yield _RELIST
        await sleep(_RELIST_INTERVAL)


async def cri_events(connection: Connection) -> AsyncGenerator[RuntimeEvent, None]:
    """RELIST when established, then every start and exit. Raises RuntimeFault when the stream breaks."""
    method = f"{_SERVICE}GetContainerEvents"
    async with connection.stream(method, pb.GetEventsRequest(), pb.ContainerEventResponse) as stream:
        await connection.call(f"{_SERVICE}Version", pb.VersionRequest(), pb.VersionResponse, None)
        if not stream.ended:
            yield _RELIST
        async for answer in stream:
            event = event_of(answer)
            if event is not None:
                yield event


def event_of(answer: pb.ContainerEventResponse) -> RuntimeEvent | None:
    """None for an event that does not change what runs. An exit without an exit code becomes RELIST."""
    if answer.container_event_type == pb.CONTAINER_STARTED_EVENT:
        return RuntimeEvent(EventKind.STARTED, answer.container_id)
    if answer.container_event_type != pb.CONTAINER_STOPPED_EVENT:
        return None
    if answer.container_id == answer.pod_sandbox_status.id:
        return RuntimeEvent(EventKind.EXITED, answer.container_id, 0, answer.created_at)
    for status in answer.containers_statuses:
        if status.id == answer.container_id and status.state == pb.CONTAINER_EXITED:
            return RuntimeEvent(EventKind.EXITED, status.id, status.exit_code, status.finished_at)
    return _RELIST
