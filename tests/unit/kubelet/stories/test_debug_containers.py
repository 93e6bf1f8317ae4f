"""Debugging a running pod: what its kubelet starts, ends and keeps out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from msgspec.structs import replace

from podling.cri.hollow.script import HollowImage, Script
from podling.cri.interface import RuntimeFault
from podling.kubelet.metrics.counters import managed_ephemeral_containers
from podling.model.errors import StatusError
from podling.model.gates import Gates
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

REMOVAL = Gates({"EphemeralContainerRemoval": True})
DEBUG = {"name": "debug", "image": "debug:1"}


async def set_debug(node: Node, *containers: dict[str, Any]) -> Pod:
    """Makes these the pod's ephemeral containers."""
    patch = {"spec": {"ephemeralContainers": list(containers)}}
    kind = "application/merge-patch+json"
    pod: Pod = await node.client.patch(
        Pod, "web", "default", patch, subresource="ephemeralcontainers", patch_type=kind
    )
    return pod


def state(pod: Pod, name: str = "debug") -> str:
    found = next((s.state for s in pod.status.ephemeral_container_statuses if s.name == name), None)
    if found is None:
        return "none"
    if found.waiting:
        return found.waiting.reason
    return "running" if found.running else "terminated"


async def debugged(node: Node) -> None:
    await node.create("web")
    await node.until("web", node.is_ready)
    await set_debug(node, DEBUG)
    await node.until("web", lambda pod: state(pod) == "running")


async def post_debug(node: Node, image: str) -> int:
    """Asks for a container `debug` at the debug subresource; the status code of the answer."""
    body = {"kind": "PodDebugContainer", "apiVersion": "v1", "container": {"image": image}}
    path = "/api/v1/namespaces/default/pods/web/debug/debug"
    status: int
    status, _, _ = await node.api.request("POST", path, {}, json.dumps(body).encode())
    return status


def test_the_name_of_an_exited_one_goes_to_one_of_those_who_ask_for_it(
    play: Play, exits: Callable[..., HollowImage]
) -> None:
    """R-DBG-1: racing creations, through the planner to the runtime and back."""

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        for round_ in range(1, 4):
            async with asyncio.TaskGroup() as tasks:
                racing = [tasks.create_task(post_debug(node, "debug:1")) for _ in range(5)]
            assert sorted(task.result() for task in racing) == [201, 409, 409, 409, 409]
            await node.until("web", lambda pod: state(pod) == "running")
            assert await post_debug(node, "debug:1") == 409
            await node.until("web", lambda pod: state(pod) == "terminated")
            assert node.runtime.calls.count("start debug#0") == round_

    play(story, gates=Gates({"DebugSubresource": True}), debug=exits(0, after=5))


def test_a_removed_one_is_killed_and_its_name_is_free_once_its_status_is_gone(play: Play) -> None:
    """R-EPH-11, R-EPH-10"""

    async def story(node: Node) -> None:
        await debugged(node)
        await set_debug(node)
        with pytest.raises(StatusError, match="Forbidden"):
            await set_debug(node, DEBUG)
        pod = await node.until("web", lambda pod: state(pod) == "none")
        assert "EphemeralContainersStarted" in [condition.type for condition in pod.status.conditions]
        await set_debug(node, DEBUG)
        await node.until("web", lambda pod: state(pod) == "running")
        assert [call for call in node.runtime.calls if "debug" in call] == [
            "create debug#0",
            "start debug#0",
            "stop debug#0",
            "remove debug#0",
            "create debug#0",
            "start debug#0",
        ]
        assert "Normal Killing spec.ephemeralContainers{debug} Stopping container debug" in await node.events(
            "web"
        )

    play(story, gates=REMOVAL, debug=HollowImage(present=True))


def test_one_removed_while_its_image_is_pulled_never_runs(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EPH-11: deleted while starting."""

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        pulling, go_on = asyncio.Event(), asyncio.Event()
        pull = node.runtime.pull_image

        async def slow(*arguments: Any, **named: Any) -> Any:
            pulling.set()
            await go_on.wait()
            return await pull(*arguments, **named)

        monkeypatch.setattr(node.runtime, "pull_image", slow)
        await set_debug(node, DEBUG)
        await pulling.wait()
        await set_debug(node)
        await node.until("web", lambda pod: state(pod) == "ContainerCreating")
        go_on.set()
        await node.until("web", lambda pod: state(pod) == "none")
        await asyncio.sleep(60)
        assert "create debug#0" not in node.runtime.calls

    play(story, gates=REMOVAL, debug=HollowImage())


def test_what_failed_under_a_name_says_nothing_about_the_next_of_that_name(play: Play) -> None:
    """R-EPH-11"""

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        await set_debug(node, {**DEBUG, "image": "missing:1"})
        await node.until("web", lambda pod: state(pod) == "ImagePullBackOff")
        await set_debug(node)
        await node.until("web", lambda pod: state(pod) == "none")
        before = asyncio.get_running_loop().time()
        await set_debug(node, DEBUG)
        await node.until("web", lambda pod: state(pod) == "running")
        assert asyncio.get_running_loop().time() - before < 1
        counts = node.kubelet.counts
        assert counts.failed["ephemeral_container", "ErrImagePull"] >= 1
        assert counts.started["ephemeral_container"] == 1 + counts.failed.total()
        assert counts.started["container"] == 1
        assert managed_ephemeral_containers(node.kubelet.pods()) == 1

    play(story, gates=REMOVAL, debug=HollowImage(present=True))


def test_gate_off_nothing_new_starts_and_what_runs_goes_on(play: Play) -> None:
    """R-EPH-8"""

    async def story(node: Node) -> None:
        await debugged(node)
        await node.crash()
        await set_debug(node, DEBUG, {**DEBUG, "name": "later"})
        on = node.config
        node.config = replace(on, gates=Gates({"EphemeralContainers": False}))
        await node.boot()
        await asyncio.sleep(60)
        assert (state(node.pod("web")), state(node.pod("web"), "later")) == ("running", "ContainerCreating")
        assert [event for event in await node.events("web") if "FeatureGateDisabled" in event] == [
            "Warning FeatureGateDisabled spec.ephemeralContainers{later} Ephemeral container later is not "
            "started: the kubelet's feature gate EphemeralContainers is off"
        ]
        page = await node.kubelet.pages["/metrics"](make_mocked_request("GET", "/metrics"))
        assert isinstance(page, web.Response) and isinstance(page.body, bytes)
        assert 'kubernetes_feature_enabled{name="EphemeralContainers",stage=""} 0.0' in page.body.decode()
        await node.crash()
        node.config = on
        await node.boot()
        await node.until("web", lambda pod: state(pod, "later") == "running")
        assert node.runtime.calls.count("start debug#0") == 1

    play(story, debug=HollowImage(present=True))


def test_where_targets_cannot_be_joined_the_container_runs_alone_and_the_user_is_told(play: Play) -> None:
    """R-EPH-4"""

    async def story(node: Node) -> None:
        node.runtime.targets = False
        await node.create("web")
        await node.until("web", node.is_ready)
        await set_debug(node, {**DEBUG, "targetContainerName": "app"})
        await node.until("web", lambda pod: state(pod) == "running")
        assert (
            "Warning TargetNotSupported spec.ephemeralContainers{debug} The runtime cannot join the process "
            'namespace of container "app": the container gets one of its own'
        ) in await node.events("web")

    play(story, debug=HollowImage(present=True))


def test_a_runtime_that_joins_targets_is_not_asked_twice(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-EPH-4: only what is unsupported is tried otherwise."""

    async def story(node: Node) -> None:
        create, faults = node.runtime.create_container, [RuntimeFault("UNKNOWN", "no space left")]

        async def once_failing(*arguments: Any) -> Any:
            if arguments[1].metadata.name == "debug" and faults:
                raise faults.pop()
            return await create(*arguments)

        monkeypatch.setattr(node.runtime, "create_container", once_failing)
        await node.create("web")
        await node.until("web", node.is_ready)
        await set_debug(node, {**DEBUG, "targetContainerName": "app"})
        await node.until("web", lambda pod: state(pod) == "CreateContainerError")

    play(story, debug=HollowImage(present=True))


@pytest.mark.parametrize(
    ("patterns", "seen"),
    [
        (("debug:1",), "running"),
        (("tools/*", "debug:*"), "running"),
        (("tools/*",), "ErrImageNotAllowed"),
    ],
)
def test_only_images_on_the_allowlist_are_started(play: Play, patterns: tuple[str, ...], seen: str) -> None:
    """R-DBG-2"""

    async def story(node: Node) -> None:
        node.config = replace(node.config, debug_image_allowlist=patterns)
        await node.boot()
        await node.create("web")
        await node.until("web", node.is_ready)
        await set_debug(node, DEBUG)
        await node.until("web", lambda pod: state(pod) == seen)
        refused = 'Warning Failed spec.ephemeralContainers{debug} Error: image "debug:1" is not on the'
        assert any(event.startswith(refused) for event in await node.events("web")) == (seen != "running")

    play(story, boot=False, debug=HollowImage(present=True))


async def lose_all(node: Node) -> None:
    """The node is stopped, and its runtime begins with nothing."""
    await node.crash()
    for sandbox in await node.runtime.list_pod_sandbox():
        await node.runtime.remove_pod_sandbox(sandbox.id)


async def stop_all(node: Node) -> None:
    """The node is stopped: what ran has ended, and the runtime knows how."""
    await node.crash()
    for sandbox in await node.runtime.list_pod_sandbox():
        await node.runtime.stop_pod_sandbox(sandbox.id)


def ready_after(node: Node, count: int) -> Callable[[Pod], bool]:
    return lambda pod: node.is_ready(pod) and restarts(pod) == count


@pytest.mark.parametrize("stop", [lose_all, stop_all])
@pytest.mark.parametrize("ended", [True, False])
def test_a_debugged_pod_comes_back_after_a_restart_and_can_be_deleted(
    play: Play,
    exits: Callable[..., HollowImage],
    stop: Callable[[Node], Awaitable[None]],
    ended: bool,
) -> None:
    """R-EPH-13: an ephemeral container that had ended, or ended with the node, is not begun again."""

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        await set_debug(node, {**DEBUG, "targetContainerName": "app"})
        seen = "terminated" if ended else "running"
        before = await node.until("web", lambda pod: state(pod) == seen)
        for restart in (1, 2, 3):
            await stop(node)
            await node.boot()
            pod = await node.until("web", ready_after(node, restart))
            assert state(pod) == "terminated"
            if ended:
                assert pod.status.ephemeral_container_statuses == before.status.ephemeral_container_statuses
        assert node.runtime.calls.count("start debug#0") == 1
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")

    play(story, debug=exits(0) if ended else HollowImage(present=True))


def test_one_whose_command_cannot_be_started_has_ended_and_its_log_says_why(play: Play) -> None:
    """R-EPH-15, R-EPH-3: at once, and it is not tried again."""
    why = 'exec: "nosuch": executable file not found in $PATH'

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        await set_debug(node, DEBUG)
        pod = await node.until("web", lambda pod: state(pod) == "terminated")
        (shown,) = pod.status.ephemeral_container_statuses
        ended = shown.state.terminated
        assert ended and (ended.exit_code, ended.reason, ended.message) == (128, "StartError", why)
        (log,) = node.config.log_dir.glob("*/debug/0.log")
        assert log.read_text().endswith(f"stderr F {why}\n")
        await asyncio.sleep(600)
        assert node.runtime.calls.count("start debug#0") == 1
        assert node.is_ready(node.pod("web"))

    fault = RuntimeFault("UNKNOWN", why)
    play(story, debug=HollowImage((Script(start_fault=fault),), present=True))


def test_one_that_comes_to_a_pod_that_has_ended_ends_with_a_reason(
    play: Play, exits: Callable[..., HollowImage]
) -> None:
    """R-EPH-15"""

    async def story(node: Node) -> None:
        await node.create("web", restartPolicy="Never")
        await node.until("web", node.has_phase("Succeeded"))
        await set_debug(node, DEBUG)
        pod = await node.until("web", lambda pod: state(pod) == "terminated")
        (shown,) = pod.status.ephemeral_container_statuses
        ended = shown.state.terminated
        assert ended and (ended.exit_code, ended.reason) == (128, "ContainerCannotRun")
        assert ended.message == "The pod has ended: no container is started in it any more"
        assert "EphemeralContainersStarted" not in [one.type for one in pod.status.conditions]
        assert pod.status.phase == "Succeeded"
        assert not [call for call in node.runtime.calls if "debug" in call]

    play(story, app=exits(0), debug=HollowImage(present=True))


def test_one_that_comes_to_a_pod_the_node_refused_ends_with_a_reason(play: Play) -> None:
    """R-EPH-15"""

    async def story(node: Node) -> None:
        await node.create("web", nodeSelector={"no": "such"})
        await node.until("web", node.has_phase("Failed"))
        await set_debug(node, DEBUG)
        await node.until("web", lambda pod: state(pod) == "terminated")

    play(story, debug=HollowImage(present=True))


def restarts(pod: Pod) -> int:
    return pod.status.container_statuses[0].restart_count


def test_what_the_api_refuses_of_a_status_holds_up_neither_the_rest_nor_the_deletion(play: Play) -> None:
    """R-EPH-13"""

    async def story(node: Node) -> None:
        await debugged(node)
        ended = {"name": "debug", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
        ended["state"] = {"terminated": {"exitCode": 0}}
        body = {"status": {"ephemeralContainerStatuses": [ended], "phase": "Pending"}}
        kind = "application/merge-patch+json"
        await node.client.patch(Pod, "web", "default", body, subresource="status", patch_type=kind)
        (app,) = [c for c in await node.runtime.list_containers() if c.metadata.name == "app"]
        node.runtime.exit(app.id, 1)
        pod = await node.until("web", lambda pod: restarts(pod) == 1 and node.is_ready(pod))
        assert (state(pod), pod.status.phase) == ("terminated", "Running")
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")

    play(story, debug=HollowImage(present=True))
