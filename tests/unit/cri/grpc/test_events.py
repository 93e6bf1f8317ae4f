"""Which source of events is used, and what happens when it breaks: a real gRPC server, made to serve one or
another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from podling.cri.grpc import containerd_events_pb2 as containerd
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.grpc.containerd_events import event_of as containerd_event
from podling.cri.grpc.events import event_of as cri_event
from podling.cri.interface import EventKind, RuntimeEvent, RuntimeFault

_RELIST = RuntimeEvent(EventKind.RELIST)


@dataclass
class Server:
    """A runtime that serves what it is given; answers to a stream are taken from `answers`, None ends the
    stream."""

    path: str
    answers: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    lost_publications: int = 0

    def __post_init__(self) -> None:
        self._server = grpc.aio.server()

    async def serve(self, service: str, methods: dict[str, tuple[Any, Callable[..., Any]]]) -> None:
        handlers = {name: _handler(request, behaviour) for name, (request, behaviour) in methods.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))

    async def start(self) -> None:
        self._server.add_insecure_port(f"unix://{self.path}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    async def stream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        while (answer := await self.answers.get()) is not None:
            yield answer

    async def publish(self, request: Any, context: Any) -> Any:
        """As containerd's: what is published before the subscription stands is heard by nobody."""
        if self.lost_publications:
            self.lost_publications -= 1
        else:
            self.answers.put_nowait(containerd.Envelope(topic=request.topic, event=request.event))
        return containerd.PublishResponse()

    async def version(self, request: Any, context: Any) -> Any:
        return pb.VersionResponse(runtime_name="fake")


def _handler(request: Any, behaviour: Callable[..., Any]) -> Any:
    kind = (
        grpc.unary_stream_rpc_method_handler
        if hasattr(behaviour, "__func__") and behaviour.__func__ is Server.stream
        else grpc.unary_unary_rpc_method_handler
    )
    return kind(
        behaviour,
        request_deserializer=request.FromString,
        response_serializer=lambda m: m.SerializeToString(),
    )


async def _serve_containerd(server: Server) -> None:
    methods = {
        "Subscribe": (containerd.SubscribeRequest, server.stream),
        "Publish": (containerd.PublishRequest, server.publish),
    }
    await server.serve("containerd.services.events.v1.Events", methods)


async def _serve_cri(server: Server, *, events: bool) -> None:
    methods: dict[str, Any] = {"Version": (pb.VersionRequest, server.version)}
    if events:
        methods["GetContainerEvents"] = (pb.GetEventsRequest, server.stream)
    await server.serve("runtime.v1.RuntimeService", methods)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(str(tmp_path / "cri.sock"))
    yield server
    await server.stop()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
async def events(server: Server, waits: list[float]) -> AsyncIterator[AsyncIterator[RuntimeEvent]]:
    runtime = GrpcRuntime(server.path, sleep=_noting(waits))
    yield runtime.events()
    await runtime.close()


def _noting(waits: list[float]) -> Callable[[float], Awaitable[None]]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    return sleep


def _exit(container_id: str, process_id: str, code: int) -> Any:
    exit = containerd.TaskExit(container_id=container_id, id=process_id, exit_status=code)
    exit.exited_at.FromNanoseconds(1_700_000_000_000_000_001)
    event = AnyMessage(type_url="containerd.events.TaskExit", value=exit.SerializeToString())
    return containerd.Envelope(topic="/tasks/exit", namespace="k8s.io", event=event)


async def test_containerd_is_asked_until_it_hears_us(
    server: Server, events: AsyncIterator[RuntimeEvent]
) -> None:
    server.lost_publications = 2
    server.answers.put_nowait(_exit("before", "before", 1))
    await _serve_containerd(server)
    await server.start()
    assert await anext(events) == _RELIST
    server.answers.put_nowait(_exit("c", "exec-process", 1))
    server.answers.put_nowait(_exit("c", "c", 3))
    assert await anext(events) == RuntimeEvent(EventKind.EXITED, "c", 3, 1_700_000_000_000_000_001)


async def test_a_stream_that_ends_is_set_up_again_and_says_relist(
    server: Server, events: AsyncIterator[RuntimeEvent], waits: list[float]
) -> None:
    await _serve_containerd(server)
    await server.start()
    assert await anext(events) == _RELIST
    server.answers.put_nowait(None)
    assert await anext(events) == _RELIST
    assert waits == [0.05]


async def test_another_runtime_is_asked_for_cri_events(
    server: Server, events: AsyncIterator[RuntimeEvent]
) -> None:
    await _serve_cri(server, events=True)
    await server.start()
    assert await anext(events) == _RELIST
    started = pb.ContainerEventResponse(container_id="c", container_event_type=pb.CONTAINER_STARTED_EVENT)
    server.answers.put_nowait(started)
    assert await anext(events) == RuntimeEvent(EventKind.STARTED, "c")


async def test_a_runtime_without_events_is_looked_at_every_second(
    server: Server, events: AsyncIterator[RuntimeEvent], waits: list[float]
) -> None:
    await _serve_cri(server, events=False)
    await server.start()
    assert [await anext(events) for _ in range(3)] == [_RELIST] * 3
    assert waits[-2:] == [1.0, 1.0]


async def test_a_runtime_that_is_not_there_is_waited_for(
    server: Server, events: AsyncIterator[RuntimeEvent]
) -> None:
    async def come_late() -> None:
        await _serve_containerd(server)
        await server.start()

    async def first_event() -> RuntimeEvent:
        return await anext(events)

    async with asyncio.TaskGroup() as group:
        first = group.create_task(first_event())
        group.create_task(come_late())
    assert first.result() == _RELIST


async def test_a_call_to_what_is_not_there_is_a_fault(tmp_path: Path) -> None:
    runtime = GrpcRuntime(str(tmp_path / "none.sock"))
    with pytest.raises(RuntimeFault) as fault:
        await runtime.version()
    assert fault.value.code == "UNAVAILABLE"
    await runtime.close()


def _stopped(container_id: str, sandbox_id: str, statuses: list[Any]) -> Any:
    return pb.ContainerEventResponse(
        container_id=container_id,
        container_event_type=pb.CONTAINER_STOPPED_EVENT,
        created_at=5,
        pod_sandbox_status=pb.PodSandboxStatus(id=sandbox_id),
        containers_statuses=statuses,
    )


_EXITED = pb.ContainerStatus(id="c", state=pb.CONTAINER_EXITED, exit_code=3, finished_at=4)
_STILL_RUNNING = pb.ContainerStatus(id="c", state=pb.CONTAINER_RUNNING)


@pytest.mark.parametrize(
    ("answer", "event"),
    [
        (_stopped("c", "s", [_EXITED]), RuntimeEvent(EventKind.EXITED, "c", 3, 4)),
        (_stopped("s", "s", [_EXITED]), RuntimeEvent(EventKind.EXITED, "s", 0, 5)),
        (_stopped("c", "s", [_STILL_RUNNING]), _RELIST),
        (_stopped("c", "s", []), _RELIST),
        (pb.ContainerEventResponse(container_event_type=pb.CONTAINER_CREATED_EVENT), None),
        (pb.ContainerEventResponse(container_event_type=pb.CONTAINER_DELETED_EVENT), None),
    ],
)
def test_cri_events_are_read(answer: Any, event: RuntimeEvent | None) -> None:
    assert cri_event(answer) == event


def _envelope(topic: str, message: Any) -> Any:
    return containerd.Envelope(topic=topic, event=AnyMessage(value=message.SerializeToString()))


@pytest.mark.parametrize(
    ("envelope", "event"),
    [
        (
            _envelope("/tasks/start", containerd.TaskStart(container_id="c")),
            RuntimeEvent(EventKind.STARTED, "c"),
        ),
        (_envelope("/tasks/oom", containerd.TaskOOM(container_id="c")), RuntimeEvent(EventKind.OOM, "c")),
        (_envelope("/tasks/exit", containerd.TaskExit(container_id="c", id="exec")), None),
        (_envelope("/podling/subscribed", containerd.TaskStart(container_id="c")), None),
    ],
)
def test_containerd_events_are_read(envelope: Any, event: RuntimeEvent | None) -> None:
    assert containerd_event(envelope) == event
