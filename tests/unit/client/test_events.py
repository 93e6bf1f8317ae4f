"""The event recorder: what is said arrives, said again it counts, and too much of it is left out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from podling.client.client import Client
from podling.client.events import BURST, LANES, QUEUE_LIMIT, EventRecorder
from podling.client.transport import Answer
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.client.conftest import HandClock, ScriptedServer

OK: Answer = (200, {}, b"{}")
POD = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u1", resource_version="7"))


class Recorder:
    """A recorder over a server that gives `answers`; `sent` waits until it has given the last of them."""

    def __init__(self, scripted: type[ScriptedServer], clock: HandClock, *answers: Any) -> None:
        self._done = asyncio.Event()
        self._server = scripted(list(answers), self._done.set)
        self.events = EventRecorder(Client(self._server), clock, "kubelet", "node1")

    async def sent(self) -> list[tuple[str, str, dict[str, Any]]]:
        async with asyncio.TaskGroup() as tasks:
            runner = tasks.create_task(self.events.run())
            await self._done.wait()
            runner.cancel()
        return [(method, path, body) for method, path, _, body in self._server.asked]


async def test_an_event_says_who_what_and_when(scripted: type[ScriptedServer], clock: HandClock) -> None:
    recorder = Recorder(scripted, clock, OK)
    recorder.events.normal(POD, "Started", "Started container c", field_path="spec.containers{c}")
    ((method, path, body),) = await recorder.sent()
    assert (method, path) == ("POST", "/api/v1/namespaces/ns/events")
    assert body["involvedObject"] == {
        "kind": "Pod",
        "namespace": "ns",
        "name": "p",
        "uid": "u1",
        "apiVersion": "v1",
        "resourceVersion": "7",
        "fieldPath": "spec.containers{c}",
    }
    assert body["source"] == {"component": "kubelet", "host": "node1"}
    assert (body["type"], body["reason"], body["count"]) == ("Normal", "Started", 1)
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-02T03:04:05Z"
    assert body["metadata"]["name"].startswith("p.")


async def test_said_again_it_is_counted(scripted: type[ScriptedServer], clock: HandClock) -> None:
    recorder = Recorder(scripted, clock, OK, OK, OK)
    for _ in range(3):
        recorder.events.warning(POD, "BackOff", "Back-off restarting")
        clock.advance(10)
    sent = await recorder.sent()
    assert [method for method, _, _ in sent] == ["POST", "PATCH", "PATCH"]
    assert [body["count"] for _, _, body in sent] == [1, 2, 3]
    again = {"count": 3, "lastTimestamp": "2026-01-02T03:04:25Z", "message": "Back-off restarting"}
    assert sent[2][2] == again


async def test_it_is_counted_also_while_it_is_not_written(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    recorder = Recorder(scripted, clock, *[OK] * (BURST + 1))
    for _ in range(BURST + 5):
        recorder.events.warning(POD, "Unhealthy", "no")
    clock.advance(300)
    recorder.events.warning(POD, "Unhealthy", "no")
    assert [body["count"] for _, _, body in await recorder.sent()][-2:] == [BURST, BURST + 6]


async def test_what_differs_in_messages_alone_is_one_from_the_tenth_on(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    """In client-go's words: that of the last one counts. Ten minutes later they are told apart again."""
    recorder = Recorder(scripted, clock, *[OK] * 13)
    for number in range(12):
        recorder.events.warning(POD, "Unhealthy", f"failed {number}")
        clock.advance(1)
    clock.advance(600)
    recorder.events.warning(POD, "Unhealthy", "failed again")
    sent = await recorder.sent()
    assert [body["message"] for _, _, body in sent[:9]] == [f"failed {number}" for number in range(9)]
    assert [(method, body["message"], body["count"]) for method, _, body in sent[9:]] == [
        ("POST", "(combined from similar events): failed 9", 1),
        ("PATCH", "(combined from similar events): failed 10", 2),
        ("PATCH", "(combined from similar events): failed 11", 3),
        ("POST", "failed again", 1),
    ]
    assert sent[10][1].endswith(sent[9][2]["metadata"]["name"])


async def test_one_that_expired_is_created_anew(scripted: type[ScriptedServer], clock: HandClock) -> None:
    gone = msgspec.json.encode({"kind": "Status", "code": 404, "reason": "NotFound", "message": "gone"})
    recorder = Recorder(scripted, clock, OK, (404, {}, gone), OK)
    recorder.events.normal(POD, "Pulled", "x")
    recorder.events.normal(POD, "Pulled", "x")
    assert [method for method, _, _ in await recorder.sent()] == ["POST", "PATCH", "POST"]


async def test_the_namespace_of_a_new_cluster_is_waited_for(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    """Not that of a pod: it has gone with it."""
    gone = msgspec.json.encode({"kind": "Status", "code": 404, "reason": "NotFound", "message": "gone"})
    recorder = Recorder(scripted, clock, (404, {}, gone), (404, {}, gone), OK)
    recorder.events.normal(Node(metadata=ObjectMeta(name="n1", uid="n1")), "Starting", "Starting kubelet.")
    assert [method for method, _, _ in await recorder.sent()] == ["POST"] * 3
    other = Recorder(scripted, clock, (404, {}, gone), OK)
    other.events.normal(POD, "Started", "x")
    other.events.normal(POD, "Pulled", "x")
    assert [body["reason"] for _, _, body in await other.sent()] == ["Started", "Pulled"]


async def test_an_object_that_never_stops_is_cut_off_and_others_are_not(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    recorder = Recorder(scripted, clock, *[OK] * (BURST + 1))
    for number in range(BURST + 10):
        recorder.events.normal(POD, f"Noise{number}", "x")
    recorder.events.normal(Pod(metadata=ObjectMeta(name="q", namespace="ns", uid="u2")), "Started", "x")
    sent = await recorder.sent()
    assert len(sent) == BURST + 1
    assert "q" in {body["involvedObject"]["name"] for _, _, body in sent}


async def test_events_of_debug_containers_are_not_lost_to_the_noise(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    """R-EPH-14: neither to their pod's nor to that of the debug containers before them."""
    debuggers, reasons = [f"debugger-{number}" for number in range(20)], ("Pulled", "Created", "Started")
    recorder = Recorder(scripted, clock, *[OK] * (BURST + len(debuggers) * len(reasons)))
    for number in range(QUEUE_LIMIT + 1):
        recorder.events.warning(POD, f"Unhealthy{number}", "x", field_path="spec.containers{c}")
    for name in debuggers:
        for reason in reasons:
            recorder.events.normal(POD, reason, "x", field_path=f"spec.ephemeralContainers{{{name}}}")
    said = [(body["reason"], body["involvedObject"]["fieldPath"]) for _, _, body in await recorder.sent()]
    for name in debuggers:
        assert [reason for reason, path in said if f"{{{name}}}" in path] == list(reasons)


async def test_a_debug_container_that_never_stops_is_cut_off_too(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    recorder = Recorder(scripted, clock, *[OK] * (BURST + 1))
    for number in range(BURST + 10):
        recorder.events.normal(POD, "Noise", f"{number}", field_path="spec.ephemeralContainers{d}")
    recorder.events.normal(POD, "Started", "x")
    assert [body["reason"] for _, _, body in await recorder.sent()] == ["Noise"] * BURST + ["Started"]


async def test_an_event_that_does_not_get_through_holds_up_few_others(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    class Stuck(scripted):  # type: ignore[valid-type,misc]
        async def request(self, method: str, path: str, query: Any, body: Any, content_type: str = "") -> Any:
            if msgspec.json.decode(body)["reason"] == "Stuck":
                await asyncio.Event().wait()
            if len(self.asked) == 10:
                done.set()
            return await super().request(method, path, query, body, content_type)

    done = asyncio.Event()
    server = Stuck([OK] * 10 * LANES * 2, done.set)
    events = EventRecorder(Client(server), clock, "kubelet")
    events.normal(POD, "Stuck", "x")
    for number in range(10 * LANES):
        events.normal(Pod(metadata=ObjectMeta(name="q", uid=f"{number}")), "Started", "x")
    async with asyncio.TaskGroup() as tasks:
        runner = tasks.create_task(events.run())
        await done.wait()
        runner.cancel()
    assert {body["reason"] for _, _, _, body in server.asked} == {"Started"}


async def test_a_server_that_refuses_does_not_end_the_recorder(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    refused = msgspec.json.encode({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})
    recorder = Recorder(scripted, clock, (403, {}, refused), OK)
    recorder.events.normal(POD, "A", "a")
    recorder.events.normal(POD, "B", "b")
    assert [body["reason"] for _, _, body in await recorder.sent()] == ["A", "B"]


async def test_two_events_of_the_same_moment_have_two_names(
    scripted: type[ScriptedServer], clock: HandClock
) -> None:
    recorder = Recorder(scripted, clock, OK, OK)
    recorder.events.normal(POD, "Created", "a")
    recorder.events.normal(POD, "Started", "b")
    names = [body["metadata"]["name"] for _, _, body in await recorder.sent()]
    assert len(set(names)) == 2
