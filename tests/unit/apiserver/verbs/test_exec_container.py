"""R-DBG-2: exec with ephemeralContainerName and ephemeralContainerImage. The test plays the kubelet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.model.gates import Gates

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
ON = Gates({"ExecEphemeralContainer": True})
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
BOTH = {"ephemeralContainerName": "shell", "ephemeralContainerImage": "tools:1", "command": ["sh", "-i"]}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


async def make_pod(api: Conversation, **spec: Any) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "app", "image": "a"}], **spec}
    made = await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert made.status == 201, made.body


@pytest.fixture
async def api(api: Conversation) -> AsyncIterator[Conversation]:
    """What is handed on to the node is answered with itself."""

    async def says_what_is_asked(context: RequestContext, obj: Any) -> Response:
        return Response(200, json.dumps([context.info.subresource, dict(context.query)]).encode())

    api.connector = says_what_is_asked
    await api.restart(kinds(ON))
    yield api


async def ask(api: Conversation, **parameters: Any) -> Any:
    query = urlencode({**BOTH, "stdin": "true", "stdout": "1", "tty": "true", **parameters}, doseq=True)
    return await api.say("POST", f"{PODS}/p/exec?{query}", **UPGRADE)


async def show(api: Conversation, name: str, state: dict[str, Any]) -> None:
    shown = {"name": name, "state": state, "image": "", "imageID": "", "ready": False, "restartCount": 0}
    patch = {"status": {"ephemeralContainerStatuses": [shown]}}
    assert (await api.patch(f"{PODS}/p/status", patch)).status == 200


async def added(api: Conversation) -> dict[str, Any]:
    """The ephemeral container, as soon as there is one."""
    async with await api.watch(f"{PODS}?watch=1") as events:
        while not (found := (await events.next())["object"]["spec"].get("ephemeralContainers")):
            pass
    container: dict[str, Any] = found[0]
    return container


@pytest.mark.parametrize("state", [RUNNING, {"terminated": {"exitCode": 3, "reason": "Error"}}])
async def test_the_container_is_made_waited_for_and_attached_to(
    api: Conversation, state: dict[str, Any]
) -> None:
    """One that has ended by then as well: the kubelet shows what it printed, and its exit code."""
    await make_pod(api)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(api))
        container = await added(api)
        await show(api, "shell", {"waiting": {"reason": "ContainerCreating"}})
        assert not asking.done()
        await show(api, "shell", state)
    expected = {
        "container": ["shell"],
        "stdin": ["true"],
        "stdout": ["1"],
        "tty": ["true"],
        "replay": ["true"],
        "exitCode": ["true"],
    }
    assert (asking.result().status, asking.result().body) == (200, ["attach", expected])
    assert container["command"] == ["sh", "-i"]
    assert (container["image"], container["imagePullPolicy"]) == ("tools:1", "Always")
    assert container["securityContext"] == {"capabilities": {"add": ["SYS_PTRACE", "SYS_ADMIN"]}}
    assert (container["stdin"], container["tty"]) == (True, True)
    assert container["targetContainerName"] == "app"


@pytest.mark.parametrize(
    ("spec", "parameters", "target"),
    [
        ({}, {}, "app"),
        ({}, {"container": "app"}, "app"),
        ({"shareProcessNamespace": True}, {}, None),
        ({"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}, {}, None),
        ({"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}, {"container": "b"}, "b"),
    ],
)
async def test_whose_processes_it_sees(
    api: Conversation, spec: dict[str, Any], parameters: dict[str, str], target: str | None
) -> None:
    await make_pod(api, **spec)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask(api, **parameters))
        assert (await added(api)).get("targetContainerName") == target
        await show(api, "shell", RUNNING)


async def test_it_is_attached_to_again_by_its_name(api: Conversation) -> None:
    await make_pod(api)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask(api))
        await added(api)
        await show(api, "shell", RUNNING)
    again = f"{PODS}/p/attach?ephemeralContainerName={{}}&stdin=true&tty=true"
    answer = await api.say("POST", again.format("shell"), **UPGRADE)
    assert answer.body == ["attach", {"container": ["shell"], "stdin": ["true"], "tty": ["true"]}]
    refused = await api.say("POST", again.format("app"), **UPGRADE)
    assert (refused.status, refused.body["message"]) == (400, "container app is not valid for pod p")


async def test_it_has_standard_input_and_a_terminal_whatever_is_asked(api: Conversation) -> None:
    """R-DBG-2. The streams are those of a terminal, so that nobody waits for the end of a standard error."""
    await make_pod(api)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(api, stdin="false", tty="false", stderr="true"))
        container = await added(api)
        await show(api, "shell", RUNNING)
    assert (container["stdin"], container["tty"]) == (True, True)
    asked = asking.result().body[1]
    assert (asked["stdin"], asked["tty"], "stderr" in asked) == (["false"], ["true"], False)


@pytest.mark.parametrize(
    ("tty", "expected"),
    [(True, {"tty": ["true"]}), (False, {"stderr": ["true"]})],
)
async def test_one_made_otherwise_is_attached_to_again_as_it_was_made(
    api: Conversation, tty: bool, expected: dict[str, list[str]]
) -> None:
    await make_pod(api)
    container = {"name": "e", "image": "i", "tty": tty, "terminationMessagePolicy": "File"}
    patch = {"spec": {"ephemeralContainers": [container]}}
    assert (await api.patch(f"{PODS}/p/ephemeralcontainers", patch)).status == 200
    query = f"ephemeralContainerName=e&stdout=true&stderr=true&tty={str(not tty).lower()}"
    answer = await api.say("POST", f"{PODS}/p/attach?{query}", **UPGRADE)
    assert answer.body == ["attach", {"container": ["e"], "stdout": ["true"], **expected}]


@pytest.mark.parametrize("missing", ["ephemeralContainerName", "ephemeralContainerImage"])
async def test_both_parameters_or_neither(api: Conversation, missing: str) -> None:
    await make_pod(api)
    refused = await ask(api, **{missing: ""})
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, missing)


async def test_with_neither_it_is_an_exec_as_ever(api: Conversation) -> None:
    await make_pod(api)
    answer = await api.say("POST", f"{PODS}/p/exec?command=ls&stdout=1", **UPGRADE)
    assert answer.body == ["exec", {"command": ["ls"], "stdout": ["1"]}]


async def test_gate_off_the_parameters_mean_nothing(api: Conversation) -> None:
    await api.restart()
    await make_pod(api)
    assert (await ask(api)).body[0] == "exec"


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (
            {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
            "container shell in pod p is waiting to start: ErrImagePull: no such image",
        ),
        (
            {"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: no such file"}},
            "container shell in pod p could not be started: exec: no such file",
        ),
    ],
)
async def test_one_that_cannot_be_attached_to_is_told_of(
    api: Conversation, state: dict[str, Any], why: str
) -> None:
    await make_pod(api)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(api))
        await added(api)
        await show(api, "shell", state)
    assert (asking.result().status, asking.result().message) == (400, why)


async def test_nothing_is_made_for_who_cannot_be_connected(api: Conversation) -> None:
    await make_pod(api, nodeName=None)
    assert (await ask(api)).message == "pod p does not have a host assigned"
    plain = await api.say("POST", f"{PODS}/p/exec?{urlencode(BOTH, doseq=True)}")
    assert plain.message == "Upgrade request required"
    assert "ephemeralContainers" not in (await api.get(f"{PODS}/p")).body["spec"]


async def test_what_is_wrong_with_it_is_told_by_the_field(api: Conversation) -> None:
    await make_pod(api)
    refused = await ask(api, container="nobody")
    assert refused.message == 'Pod "p" is invalid: targetContainerName: Not found: "nobody"'


async def test_of_many_that_ask_for_one_name_at_once_one_is_connected(api: Conversation) -> None:
    await make_pod(api)
    async with asyncio.TaskGroup() as tasks:
        racing = [tasks.create_task(ask(api)) for _ in range(8)]
        await added(api)
        await show(api, "shell", RUNNING)
    assert sorted(task.result().status for task in racing) == [200] + [409] * 7
