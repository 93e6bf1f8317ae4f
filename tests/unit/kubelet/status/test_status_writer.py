"""The newest status is written, in order, whatever the server does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from podling.client.client import Client
from podling.client.transport import JSON, Answer
from podling.kubelet.status import writer as status_writer
from podling.kubelet.status.writer import StatusWriter
from podling.model.codec import json as model_json
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodStatus


class SlowServer:
    """Answers a patch when it is told to, and then says what the pod is."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.phases: list[str] = []
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        assert path == "/api/v1/namespaces/ns/pods/web/status"
        self.phases.append(json.loads(body or b"")["status"]["phase"])
        self.asked.set()
        await self.answer.wait()
        code = self.codes.pop(0) if self.codes else 200
        if code != 200:
            return (
                code,
                {},
                json.dumps({"kind": "Status", "code": code, "reason": "R", "message": "m"}).encode(),
            )
        version = str(10 + len(self.phases))
        meta = ObjectMeta(name="web", namespace="ns", uid="u", resource_version=version)
        return 200, {}, model_json.encode(Pod(metadata=meta, status=PodStatus(phase=self.phases[-1])))

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nobody watches here")
        yield b""

    async def close(self) -> None: ...


def pod(phase: str = "", version: str = "5") -> Pod:
    meta = ObjectMeta(name="web", namespace="ns", uid="u", resource_version=version)
    return Pod(metadata=meta, status=PodStatus(phase=phase))


@asynccontextmanager
async def writing(server: SlowServer, *, answers: bool = False) -> AsyncIterator[StatusWriter]:
    """A writer at work; `answers`: the server waits for nobody's word."""
    if answers:
        server.answer.set()
    writer = StatusWriter(Client(server), pod())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(writer.run())
        yield writer
        running.cancel()


async def write(server: SlowServer, *phases: str) -> StatusWriter:
    """The first is being sent when the others are said; all has been written at the end."""
    async with writing(server) as writer:
        writer.publish(PodStatus(phase=phases[0]))
        await server.asked.wait()
        for phase in phases[1:]:
            writer.publish(PodStatus(phase=phase))
        server.answer.set()
        await writer.flushed()
    return writer


async def test_a_status_that_was_replaced_before_it_was_sent_is_never_sent() -> None:
    server = SlowServer()
    await write(server, "Pending", "Running", "Failed")
    assert server.phases == ["Pending", "Failed"]


async def test_what_the_server_has_already_is_not_sent_again() -> None:
    server = SlowServer()
    await write(server, "Running", "Running")
    assert server.phases == ["Running"]


async def test_a_server_in_trouble_is_asked_again_with_the_newest() -> None:
    server = SlowServer(500)
    await write(server, "Pending", "Running")
    assert server.phases == ["Pending", "Running"]


async def test_a_pod_that_is_gone_is_not_written_to_for_ever() -> None:
    server = SlowServer(404)
    await write(server, "Pending")
    assert server.phases == ["Pending"]


@pytest.mark.parametrize("code", [403, 422])
async def test_whoever_waits_for_a_status_that_is_refused_does_not_wait_for_ever(code: int) -> None:
    server = SlowServer(*[code] * 100)
    await write(server, "Pending", "Running")
    assert server.phases[-1] == "Running"


async def test_an_older_object_from_the_watch_is_not_believed() -> None:
    server = SlowServer()
    writer = await write(server, "Running")
    writer.learn(pod("Pending", version="6"))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(writer.run())
        writer.publish(PodStatus(phase="Running"))
        await writer.flushed()
        running.cancel()
    assert server.phases == ["Running"]


async def test_what_may_wait_is_sent_with_what_may_not() -> None:
    server = SlowServer()
    async with writing(server, answers=True) as writer:
        writer.publish(PodStatus(phase="Pending"), may_wait=True)
        await asyncio.sleep(0)
        assert server.phases == []
        writer.publish(PodStatus(phase="Running"))
        await writer.flushed()
    assert server.phases == ["Running"]


async def test_what_may_wait_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "LONGEST_WAIT", 0)
    server = SlowServer()
    async with writing(server) as writer:
        writer.publish(PodStatus(phase="Pending"), may_wait=True)
        await server.asked.wait()
    assert server.phases == ["Pending"]


async def test_whoever_wants_the_newest_written_does_not_wait_for_what_may() -> None:
    server = SlowServer()
    async with writing(server, answers=True) as writer:
        writer.publish(PodStatus(phase="Pending"), may_wait=True)
        await writer.flushed()
    assert server.phases == ["Pending"]


async def test_what_came_to_wait_during_a_write_is_not_taken_for_written() -> None:
    server = SlowServer()
    async with writing(server) as writer:
        writer.publish(PodStatus(phase="Pending"))
        await server.asked.wait()
        writer.publish(PodStatus(phase="Running"), may_wait=True)
        server.answer.set()
        await writer.flushed()
    assert server.phases == ["Pending", "Running"]
