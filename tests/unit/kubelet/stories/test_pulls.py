"""Pulls that take their time, or never end, told as stories."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from podling.cri.hollow.script import HollowImage
from podling.model.gates import Gates
from podling.model.types.container import EphemeralContainer
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

STUCK = HollowImage(stuck=True)


def said(word: str, events: list[str]) -> list[str]:
    return [event for event in events if word in event]


def test_a_pull_that_hangs_holds_up_its_own_pod_only_and_ends_with_it(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("hung", {"name": "hangs"})
        await node.until("hung", node.waits_for("ContainerCreating"))
        await node.create("other")
        await node.until("other", node.is_ready)
        assert said("Pulling", await node.events("hung"))
        began = node.time.now()
        await node.client.delete(Pod, "hung", "default")
        await node.until_gone("hung")
        await node.until_idle("hung")
        assert node.time.now() - began < timedelta(seconds=2)
        assert node.runtime.calls.count("cancel pull hangs:1") == 1
        assert [s.metadata.name for s in await node.runtime.list_pod_sandbox()] == ["other"]

    play(story, hangs=STUCK)


def test_a_pull_that_makes_no_progress_is_given_up_and_tried_again(play: Play) -> None:
    async def story(node: Node) -> None:
        began = node.time.now()
        await node.create("hung", {"name": "hangs"})
        pod = await node.until("hung", node.waits_for("ErrImagePull"))
        waited = node.time.now() - began
        assert timedelta(minutes=5) <= waited <= timedelta(minutes=7)
        why = (
            "rpc error: code = DeadlineExceeded desc = pulling hangs:1 made no progress for 5m0s: registry "
            "docker.io, or its mirror, does not answer or sends nothing; see whether this node can reach it, "
            "or raise --image-pull-progress-deadline"
        )
        assert node.waiting(pod.status.container_statuses[0].state).message == why
        assert f'Failed to pull image "hangs:1": {why}' in said(why, await node.events("hung"))[0]
        await node.until("hung", node.waits_for("ImagePullBackOff"))
        while node.runtime.calls.count("pull hangs:1") < 2:  # noqa: ASYNC110
            await asyncio.sleep(1)
        assert node.runtime.calls.count("cancel pull hangs:1") == 1

    play(story, hangs=STUCK)


def test_a_pull_that_gets_on_may_take_as_long_as_it_likes(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("big", {"name": "large"})
        await node.until("big", node.is_ready)
        assert node.runtime.calls.count("pull large:1") == 1

    play(story, large=HollowImage(pull_seconds=3600))


def test_a_container_that_gets_another_image_does_not_wait_for_the_old_one(play: Play) -> None:
    async def story(node: Node) -> None:
        pod = await node.create("fixed", {"name": "hangs"})
        await node.until("fixed", node.waits_for("ContainerCreating"))
        await asyncio.sleep(5)
        pod = node.pod("fixed")
        pod.spec.containers[0].image = "app:1"
        await node.client.update(pod)
        await node.until("fixed", node.is_ready)
        assert "cancel pull hangs:1" in node.runtime.calls

    play(story, hangs=STUCK)


def test_a_debug_container_that_is_removed_takes_its_pull_with_it(play: Play) -> None:
    """R-EPH-11"""

    async def story(node: Node) -> None:
        await node.create("web")
        pod = await node.until("web", node.is_ready)
        pod.spec.ephemeral_containers = [EphemeralContainer(name="debug", image="hangs:1")]
        await node.client.update(pod, subresource="ephemeralcontainers")
        while "pull hangs:1" not in node.runtime.calls:  # noqa: ASYNC110
            await asyncio.sleep(1)
        pod = node.pod("web")
        pod.spec.ephemeral_containers = []
        await node.client.update(pod, subresource="ephemeralcontainers")
        await asyncio.sleep(1)
        assert "cancel pull hangs:1" in node.runtime.calls

    play(story, gates=Gates.parse("EphemeralContainerRemoval=true"), hangs=STUCK)
