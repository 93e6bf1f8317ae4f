"""R-DBG-1: the debug subresource, with its kubelet played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.paths.openapi.operations import paths_of
from podling.apiserver.verbs import members
from podling.model.gates import Gates

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
DEBUG = f"{PODS}/p/debug"
ON = Gates({"DebugSubresource": True})


def debug_container(image: str = "tools:1", **container: Any) -> dict[str, Any]:
    return {"kind": "PodDebugContainer", "apiVersion": "v1", "container": {"image": image, **container}}


class Kubelet:
    """Shows containers, and stops showing them."""

    def __init__(self, api: Conversation) -> None:
        self._api = api

    async def show(self, *statuses: tuple[str, str]) -> Any:
        details = {
            "running": {"startedAt": "2026-01-01T00:00:00Z"},
            "terminated": {"exitCode": 0},
            "waiting": {},
        }
        shown = [
            {
                "name": name,
                "state": {state: details[state]},
                "image": "",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
            }
            for name, state in statuses
        ]
        patch = {"status": {"ephemeralContainerStatuses": shown or None}}
        answer = await self._api.patch(f"{PODS}/p/status", patch)
        assert answer.status == 200, answer.body
        return answer.body["status"]


@pytest.fixture
async def kubelet(api: Conversation) -> AsyncIterator[Kubelet]:
    await api.restart(kinds(ON))
    made = await api.post(
        PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "app", "image": "a"}]}}
    )
    assert made.status == 201
    yield Kubelet(api)


async def entries(api: Conversation) -> list[tuple[str, str]]:
    spec = (await api.get(f"{PODS}/p")).body["spec"]
    return [(one["name"], one["image"]) for one in spec.get("ephemeralContainers", [])]


async def emptied(api: Conversation) -> None:
    """Returns once the pod has no ephemeral containers."""
    async with await api.watch(f"{PODS}?watch=1") as events:
        while (await events.next())["object"]["spec"].get("ephemeralContainers"):
            pass


async def test_one_is_created_read_and_deleted_by_its_name(api: Conversation, kubelet: Kubelet) -> None:
    made = await api.post(f"{DEBUG}/shell", debug_container(stdin=True, tty=True))
    assert made.status == 201
    assert (made.body["kind"], made.body["metadata"]) == (
        "PodDebugContainer",
        {"name": "shell", "namespace": "default"},
    )
    assert (made.body["container"]["name"], made.body["container"]["tty"]) == ("shell", True)
    assert made.body["container"]["terminationMessagePath"] == "/dev/termination-log"
    assert (await api.get(f"{DEBUG}/shell")).body == made.body
    assert await entries(api) == [("shell", "tools:1")]
    gone = await api.delete(f"{DEBUG}/shell")
    assert (gone.status, gone.body["status"], gone.body["details"]) == (
        200,
        "Success",
        {"name": "shell", "kind": "pods/debug"},
    )
    assert await entries(api) == []
    for answer in (await api.get(f"{DEBUG}/shell"), await api.delete(f"{DEBUG}/shell")):
        assert (answer.status, answer.message) == (404, 'pods/debug "shell" not found')


async def test_its_status_is_shown_under_both_names(api: Conversation, kubelet: Kubelet) -> None:
    status = await kubelet.show(("shell", "running"))
    assert status["debugContainerStatuses"] == status["ephemeralContainerStatuses"]
    assert "debugContainerStatuses" not in await kubelet.show()


async def test_gate_off_there_is_neither(api: Conversation, kubelet: Kubelet) -> None:
    await api.restart()
    assert (await api.post(f"{DEBUG}/shell", debug_container())).status == 404
    assert "debugContainerStatuses" not in await kubelet.show(("shell", "running"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resources", {"limits": {"cpu": "1"}}),
        ("livenessProbe", {"exec": {"command": ["true"]}}),
        ("readinessProbe", {"exec": {"command": ["true"]}}),
        ("lifecycle", {"preStop": {"exec": {"command": ["true"]}}}),
    ],
)
async def test_what_it_may_not_have_is_refused_by_its_path(
    api: Conversation, kubelet: Kubelet, field: str, value: Any
) -> None:
    refused = await api.post(f"{DEBUG}/shell", debug_container(**{field: value}))
    assert refused.status == 422
    assert refused.body["details"]["causes"][0]["field"] == f"container.{field}"


@pytest.mark.parametrize(
    ("name", "shown", "why"),
    [
        ("app", [], "the pod has a container of this name"),
        ("shell", [], "a container of this name is being started"),
        ("shell", [("shell", "waiting")], "a container of this name is being started"),
        ("shell", [("shell", "running")], "a container of this name is running"),
    ],
)
async def test_a_name_in_use_is_a_conflict(
    api: Conversation, kubelet: Kubelet, name: str, shown: list[tuple[str, str]], why: str
) -> None:
    await api.post(f"{DEBUG}/shell", debug_container())
    await kubelet.show(*shown)
    refused = await api.post(f"{DEBUG}/{name}", debug_container())
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.message == f'Operation cannot be fulfilled on pods/debug "{name}": {why}'


async def test_of_two_racing_creations_exactly_one_wins(api: Conversation, kubelet: Kubelet) -> None:
    async with asyncio.TaskGroup() as tasks:
        racing = [tasks.create_task(api.post(f"{DEBUG}/shell", debug_container(f"t:{n}"))) for n in range(8)]
    won = [task.result().body["container"]["image"] for task in racing if task.result().status == 201]
    assert sorted(task.result().status for task in racing) == [201] + [409] * 7
    assert await entries(api) == [("shell", won[0])]


async def test_the_name_of_an_exited_one_is_used_again_once_the_kubelet_let_it_go(
    api: Conversation, kubelet: Kubelet
) -> None:
    """Many ask for it at once, and exactly one gets it."""
    await api.post(f"{DEBUG}/shell", debug_container())
    await kubelet.show(("shell", "terminated"))
    async with asyncio.TaskGroup() as tasks:
        racing = [tasks.create_task(api.post(f"{DEBUG}/shell", debug_container(f"t:{n}"))) for n in range(4)]
        await emptied(api)
        assert not any(task.done() for task in racing), "the old one is still shown"
        await kubelet.show()
    assert sorted(task.result().status for task in racing) == [201] + [409] * 3
    (entry,) = await entries(api)
    assert entry[0] == "shell" and entry[1].startswith("t:")


async def test_a_kubelet_that_does_not_let_go_is_not_waited_for_for_ever(
    api: Conversation, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "LONGEST_WAIT", 0.01)
    await api.post(f"{DEBUG}/shell", debug_container())
    await kubelet.show(("shell", "terminated"))
    refused = await api.post(f"{DEBUG}/shell", debug_container())
    assert (refused.status, refused.body["reason"]) == (504, "Timeout")


async def test_a_pod_that_goes_ends_the_wait(api: Conversation, kubelet: Kubelet) -> None:
    await api.post(f"{DEBUG}/shell", debug_container())
    await kubelet.show(("shell", "terminated"))
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(api.post(f"{DEBUG}/shell", debug_container()))
        await emptied(api)
        await api.delete(f"{PODS}/p")
    assert asking.result().status == 404


async def test_deleted_while_starting(api: Conversation, kubelet: Kubelet) -> None:
    """The entry goes at once; its name, when the kubelet has let go of what it had begun."""
    await api.post(f"{DEBUG}/shell", debug_container())
    await kubelet.show(("shell", "waiting"))
    assert (await api.delete(f"{DEBUG}/shell")).status == 200
    assert (await api.post(f"{DEBUG}/shell", debug_container())).status == 409
    await kubelet.show()
    assert (await api.post(f"{DEBUG}/shell", debug_container())).status == 201


async def test_dry_run_changes_nothing(api: Conversation, kubelet: Kubelet) -> None:
    assert (await api.post(f"{DEBUG}/shell?dryRun=All", debug_container())).status == 201
    assert await entries(api) == []
    await api.post(f"{DEBUG}/shell", debug_container())
    assert (await api.delete(f"{DEBUG}/shell?dryRun=All")).status == 200
    assert await entries(api) == [("shell", "tools:1")]


@pytest.mark.parametrize("path", [DEBUG, f"{DEBUG}/shell/more", f"{PODS}/p/status/more"])
async def test_a_path_with_too_few_or_too_many_names_is_not_found(
    api: Conversation, kubelet: Kubelet, path: str
) -> None:
    assert (await api.get(path)).status == 404


async def test_the_name_in_the_body_is_that_of_the_path(api: Conversation, kubelet: Kubelet) -> None:
    body = {**debug_container(), "metadata": {"name": "other"}}
    assert (await api.post(f"{DEBUG}/shell", body)).status == 400


def test_openapi_describes_it() -> None:
    (pods,) = (kind for kind in kinds(ON) if kind.resource.plural == "pods")
    path = paths_of(pods)["/api/v1/namespaces/{namespace}/pods/{name}/debug/{member}"]
    assert path.keys() == {"post", "get", "delete", "parameters"}
    common = [parameter["name"] for parameter in path["parameters"]]
    assert common == ["member", "name", "namespace", "pretty"]
