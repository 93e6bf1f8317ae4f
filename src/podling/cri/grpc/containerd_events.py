"""Events from containerd's own events service, on the socket that CRI is served on. In every containerd since
1.0.

containerd does not confirm a subscription: it answers nothing until something happens. So podling publishes
an event of its own and waits until it comes back; every later event is delivered too.

As seen with containerd 1.6.20: an exit is reported within a millisecond, while ContainerStatus says RUNNING
for some 25 ms more, because CRI listens to the same events and first has the shim clean up. RemoveContainer
in between waits for that and succeeds, or now and then is refused (`ttrpc: closed`, `container is still
running`) and succeeds when called again, so nobody has to query before acting on an exit.
(`tests/contract/cri/test_containerd.py`)
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator

from google.protobuf.any_pb2 import Any

from podling.cri.grpc import containerd_events_pb2 as pb
from podling.cri.grpc.connection import Connection, Stream
from podling.cri.interface import UNAVAILABLE, EventKind, RuntimeEvent, RuntimeFault

_SERVICE = "/containerd.services.events.v1.Events/"
_NAMESPACE = "k8s.io"
_START, _EXIT, _OOM, _HERE = "/tasks/start", "/tasks/exit", "/tasks/oom", "/podling/subscribed"
_FILTERS = [f'namespace=={_NAMESPACE},topic=="{topic}"' for topic in (_START, _EXIT, _OOM, _HERE)]
_PUBLISH_INTERVAL = 0.005


async def containerd_events(connection: Connection) -> AsyncGenerator[RuntimeEvent, None]:
    """RELIST once subscribed, then every start, exit and memory kill. Raises RuntimeFault when the stream
    breaks."""
    request = pb.SubscribeRequest(filters=_FILTERS)
    async with connection.stream(f"{_SERVICE}Subscribe", request, pb.Envelope) as stream:
        await _subscribed(connection, stream)
        yield RuntimeEvent(EventKind.RELIST)
        async for envelope in stream:
            event = event_of(envelope)
            if event is not None:
                yield event


async def _subscribed(connection: Connection, stream: Stream[pb.Envelope]) -> None:
    """Returns once an event published now is heard. Raises RuntimeFault."""
    token = uuid.uuid4().bytes
    try:
        async with asyncio.TaskGroup() as group:
            publishing = group.create_task(_keep_publishing(connection, token))
            await _hear(stream, token)
            publishing.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _keep_publishing(connection: Connection, token: bytes) -> None:
    """Publish again and again: containerd handles calls concurrently, and the first event may be published
    before the subscription exists."""
    request = pb.PublishRequest(topic=_HERE, event=Any(type_url="podling.Subscribed", value=token))
    metadata = (("containerd-namespace", _NAMESPACE),)
    while True:
        await connection.call(f"{_SERVICE}Publish", request, pb.PublishResponse, None, metadata)
        await asyncio.sleep(_PUBLISH_INTERVAL)


async def _hear(stream: Stream[pb.Envelope], token: bytes) -> None:
    async for envelope in stream:
        if envelope.event.value == token:
            return
    raise RuntimeFault(UNAVAILABLE, "the stream of events ended before it began")


def event_of(envelope: pb.Envelope) -> RuntimeEvent | None:
    """The RuntimeEvent for one of containerd's events; None for an exec's process or an event of another
    topic."""
    data = envelope.event.value
    if envelope.topic == _START:
        return RuntimeEvent(EventKind.STARTED, pb.TaskStart.FromString(data).container_id)
    if envelope.topic == _OOM:
        return RuntimeEvent(EventKind.OOM, pb.TaskOOM.FromString(data).container_id)
    if envelope.topic != _EXIT:
        return None
    exit = pb.TaskExit.FromString(data)
    if exit.id not in ("", exit.container_id):
        return None
    return RuntimeEvent(EventKind.EXITED, exit.container_id, exit.exit_status, exit.exited_at.ToNanoseconds())
