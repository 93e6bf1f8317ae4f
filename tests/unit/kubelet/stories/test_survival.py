"""A runtime that answers errors, or late, or nothing: pods come to the state they should be in all the same,
nothing is started out of order (R-INIT-1, R-INIT-11), and nothing is left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.hollow.script import HollowImage
from podling.cri.interface import RuntimeFault
from podling.model.types.node import Node as ApiNode
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

Exits = Callable[..., HollowImage]
DEADLINE = 120.0
"""Seconds after which a call that is not answered is given up."""
STARTING = (
    "list_pod_sandbox",
    "list_containers",
    "run_pod_sandbox",
    "pod_sandbox_status",
    "image_status",
    "create_container",
    "start_container",
    "container_status",
)
ENDING = ("stop_container", "stop_pod_sandbox", "remove_container", "remove_pod_sandbox")


class Refused:
    """The call is not made."""

    def __init__(self, node: Node, name: str, times: int, code: str = "UNKNOWN") -> None:
        self._code = code
        self._call = getattr(node.runtime, name)
        self._left = times
        setattr(node.runtime, name, self)

    async def __call__(self, *args: Any, **more: Any) -> Any:
        if self._left == 0:
            return await self._call(*args, **more)
        self._left -= 1
        return await self._fail(*args, **more)

    async def _fail(self, *args: Any, **more: Any) -> Any:
        raise RuntimeFault(self._code, "no such luck")


class Unanswered(Refused):
    """The call is never made, and nobody is told."""

    async def _fail(self, *args: Any, **more: Any) -> Any:
        await asyncio.sleep(DEADLINE)
        raise RuntimeFault("DEADLINE_EXCEEDED", "context deadline exceeded")


class AnswerLost(Refused):
    """The call is made, and nobody is told."""

    async def _fail(self, *args: Any, **more: Any) -> Any:
        await self._call(*args, **more)
        await asyncio.sleep(DEADLINE)
        raise RuntimeFault("DEADLINE_EXCEEDED", "context deadline exceeded")


FAULTS = (Refused, Unanswered, AnswerLost)


def started(calls: list[str]) -> list[str]:
    """The names of what was started, in order."""
    return [call.split()[1].partition("#")[0] for call in calls if call.startswith("start")]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", STARTING)
def test_a_pod_starts_on_a_runtime_that_fails_now_and_then(
    play: Play, exits: Exits, name: str, fault: type[Refused]
) -> None:
    async def story(node: Node) -> None:
        fault(node, name, 2)
        await node.boot()
        await node.create("web", initContainers=[node.container("one"), node.container("two")])
        await node.until("web", node.is_ready)
        order = list(dict.fromkeys(started(node.runtime.calls)))
        assert order == ["one", "two", "app"]
        assert started(node.runtime.calls).count("app") == 1
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")
        await node.until_idle("web")
        assert await node.runtime.list_containers() == []
        assert await node.runtime.list_pod_sandbox() == []

    play(story, boot=False, one=exits(0), two=exits(0))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_runtime_that_dies_in_a_start_is_asked_what_became_of_it(
    play: Play, exits: Exits, fault: type[Refused]
) -> None:
    """A container that nobody knows to have begun is not taken for one that runs."""

    async def story(node: Node) -> None:
        fault(node, "start_container", 1)
        Refused(node, "container_status", 1)
        await node.create("web", initContainers=[node.container("one")])
        await node.until("web", node.is_ready)
        order = list(dict.fromkeys(started(node.runtime.calls)))
        assert order == ["one", "app"]
        assert started(node.runtime.calls).count("app") == 1

    play(story, one=exits(0))


def first_runs(pod: Pod) -> bool:
    return any(one.state.running for one in pod.status.init_container_statuses)


def test_an_exit_nobody_was_told_of_is_found_once_the_runtime_answers(play: Play) -> None:
    """Its events may come back before its answers do."""

    async def story(node: Node) -> None:
        await node.create("web", initContainers=[node.container("one")])
        await node.until("web", first_runs)
        node.runtime.disconnect()
        (one,) = await node.runtime.list_containers()
        node.runtime.exit(one.id, 0)
        Refused(node, "list_containers", 3)
        node.runtime.reconnect()
        began = asyncio.get_running_loop().time()
        await node.until("web", node.is_ready)
        assert asyncio.get_running_loop().time() - began < 2

    play(story, one=HollowImage())


def test_an_exit_the_runtime_finds_late_is_found_too(play: Play) -> None:
    """Right after its return it still says that what ended meanwhile runs."""

    async def story(node: Node) -> None:
        await node.create("web", initContainers=[node.container("one")])
        await node.until("web", first_runs)
        node.runtime.disconnect()
        node.runtime.reconnect()
        await asyncio.sleep(0.5)
        node.runtime.disconnect()
        (one,) = await node.runtime.list_containers()
        node.runtime.exit(one.id, 0)
        await node.until("web", node.is_ready)

    play(story, one=HollowImage())


def test_what_fails_because_the_runtime_went_away_is_tried_again_soon(play: Play) -> None:
    """It says nothing about the pod, so there is no back-off of ten seconds and more."""

    async def story(node: Node) -> None:
        Refused(node, "run_pod_sandbox", 2, "UNAVAILABLE")
        Refused(node, "create_container", 2, "UNAVAILABLE")
        Refused(node, "start_container", 2, "UNAVAILABLE")
        await node.create("web")
        await node.until("web", node.is_ready)
        assert 5 < asyncio.get_running_loop().time() < 8

    play(story)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ENDING)
def test_a_pod_ends_on_a_runtime_that_fails_now_and_then(play: Play, name: str, fault: type[Refused]) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        fault(node, name, 2)
        await node.client.delete(Pod, "web", "default", grace_seconds=5)
        await node.until_gone("web")
        await node.until_idle("web")
        assert await node.runtime.list_containers() == []
        assert await node.runtime.list_pod_sandbox() == []

    play(story)


def ready_condition(node: ApiNode) -> tuple[str, str, str]:
    (ready,) = [c for c in node.status.conditions if c.type == "Ready"]
    return ready.status, ready.reason, ready.message


def test_a_silent_runtime_makes_the_node_not_ready_and_pods_wait_for_its_return(play: Play) -> None:
    """Pods that run keep their status, as Kubernetes' kubelet leaves it; new ones start afterwards."""

    async def story(node: Node) -> None:
        await node.create("old")
        before = await node.until("old", node.is_ready)
        for name in ("version", "status", "list_images", *STARTING):
            Unanswered(node, name, 4)
        await node.create("new")
        await asyncio.sleep(150)
        down = ("False", "KubeletNotReady", "container runtime is down")
        assert ready_condition(await node.client.get(ApiNode, "n1")) == down
        assert not node.is_ready(node.pod("new"))
        await node.until("new", node.is_ready)
        await asyncio.sleep(DEADLINE)
        assert ready_condition(await node.client.get(ApiNode, "n1"))[0] == "True"
        assert node.pod("old").status.container_statuses == before.status.container_statuses

    play(story)


def test_a_pull_that_hangs_holds_up_nobody_else(play: Play) -> None:
    """The pod says what it waits for, and can be deleted."""

    async def story(node: Node) -> None:
        Unanswered(node, "pull_image", 1)
        await node.create("stuck", {"image": "slow:1"})
        await node.until("stuck", node.waits_for("ContainerCreating"))
        await node.create("web", {"image": "quick:1"})
        await node.until("web", node.is_ready)
        assert 'Normal Pulling spec.containers{app} Pulling image "slow:1"' in await node.events("stuck")
        await node.client.delete(Pod, "stuck", "default")
        await node.until_gone("stuck")
        assert asyncio.get_running_loop().time() < DEADLINE

    play(story, slow=HollowImage(), quick=HollowImage())
