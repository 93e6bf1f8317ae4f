"""Events from CRI GetContainerEvents, for runtimes that are not containerd.

The method sends nothing until something happens, so a query is sent after it: once that is answered the
runtime has read both, and the stream is taken to be established.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.connection import Connection
from podling.cri.interface import EventKind, RuntimeEvent

_SERVICE = "/runtime.v1.RuntimeService/"
_RELIST = RuntimeEvent(EventKind.RELIST)


async def cri_events(connection: Connection) -> AsyncGenerator[RuntimeEvent, None]:
    """RELIST when established, then every start and exit. Raises RuntimeFault when the stream breaks."""
    stream = connection.stream(
        f"{_SERVICE}GetContainerEvents", pb.GetEventsRequest(), pb.ContainerEventResponse
    )
    with stream:
        await connection.call(f"{_SERVICE}Version", pb.VersionRequest(), pb.VersionResponse, None, (), True)
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
