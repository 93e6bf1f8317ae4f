"""Pods that take too much, told as stories: who has to go, what he is told, who is not let in meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from podling.cri.hollow.script import HollowImage, Script, image_id
from podling.kubelet.eviction import thresholds
from podling.kubelet.host.disk import FileSystem
from podling.model.types.core import Event
from podling.model.types.node import Node as ApiNode
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

ALWAYS_LOW = {"nodefs.available": "100%"}


def condition(pod: Pod, kind: str) -> tuple[str, str, str] | None:
    found = next((c for c in pod.status.conditions if c.type == kind), None)
    return (found.status, found.reason, found.message) if found else None


async def pressed(node: Node, after: float) -> bool:
    """Whether the node is said to be short of disk, so many seconds from now."""
    await asyncio.sleep(after)
    conditions = (await node.client.get(ApiNode, "n1")).status.conditions
    return any(c.type == "DiskPressure" and c.status == "True" for c in conditions)


def writes(size: int) -> HollowImage:
    return HollowImage((Script(written_bytes=size),), present=True)


def limited(size: str) -> dict[str, Any]:
    return {"resources": {"limits": {"ephemeral-storage": size}}}


def test_a_pod_that_writes_more_than_its_limit_is_evicted(play: Play) -> None:
    """R-EPH-12"""

    async def story(node: Node) -> None:
        await node.create("greedy", {**limited("1Mi")})
        await node.create("modest", {"name": "small", **limited("4Mi")})
        pod = await node.until("greedy", node.has_phase("Failed"))
        message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
        assert (pod.status.reason, pod.status.message) == ("Evicted", message)
        assert condition(pod, "DisruptionTarget") == ("True", "TerminationByKubelet", message)
        assert f"Warning Evicted {message}" in await node.events("greedy")
        await asyncio.sleep(60)
        assert node.is_ready(node.pod("modest"))
        assert condition(node.pod("modest"), "DisruptionTarget") is None

    play(story, app=writes(2 << 20), small=writes(2 << 20))


def test_a_node_that_is_low_on_disk_says_so_and_ends_pods_one_by_one(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("first")
        await node.create("saved", {"name": "small"}, priorityClassName="system-node-critical")
        for name in ("first", "saved"):
            await node.until(name, node.is_ready)
        await node.crash()
        node.config = replace(node.config, eviction_hard=ALWAYS_LOW)
        await node.boot()
        pod = await node.until("first", node.has_phase("Failed"))
        assert pod.status.reason == "Evicted"
        assert pod.status.message.startswith("The node was low on resource: ephemeral-storage. ")
        assert node.pod("saved").status.phase == "Running"
        await node.create("late")
        late = await node.until("late", node.has_phase("Failed"))
        refused = "Pod was rejected: The node had condition: [DiskPressure]. "
        assert (late.status.reason, late.status.message) == ("Evicted", refused)
        said = [e.reason for e in (await node.client.list(Event, "default")).items]
        assert "EvictionThresholdMet" in said
        [pressure] = [
            c for c in (await node.client.get(ApiNode, "n1")).status.conditions if c.type == "DiskPressure"
        ]
        assert (pressure.status, pressure.reason) == ("True", "KubeletHasDiskPressure")
        assert pressure.message == "kubelet has disk pressure"
        await asyncio.sleep(121)
        assert [call for call in node.runtime.calls if call.startswith("remove image")]

    play(story, app=writes(1 << 20), small=writes(1), unused=HollowImage(present=True))


def test_dead_containers_of_pods_that_are_over_go_before_images_and_before_pods(
    play: Play, exits: Callable[..., HollowImage]
) -> None:
    """Their status stays; what runs keeps its last dead instance."""

    async def story(node: Node) -> None:
        critical = {"priorityClassName": "system-node-critical"}
        await node.create("over", {"name": "job"}, restartPolicy="Never")
        await node.until("over", node.has_phase("Succeeded"))
        await node.create("lives", {"name": "small"}, **critical)
        await node.create("again", {"name": "crash"}, **critical)
        await node.until("lives", node.is_ready)
        await node.until("again", node.is_ready)
        await asyncio.sleep(300)
        over = node.pod("over")
        log = node.config.log_dir / f"default_over_{over.metadata.uid}" / "job" / "0.log"
        assert log.exists()
        await node.crash()
        node.config = replace(node.config, eviction_hard=ALWAYS_LOW)
        await node.boot()
        await asyncio.sleep(200)
        calls = [call for call in node.runtime.calls if call.startswith("remove")]
        assert calls[:2] == ["remove job#0", "remove default/over#0"]
        job, unused = (f"remove image {image_id(f'{name}:1')}" for name in ("job", "unused"))
        assert {job, unused} <= set(calls[2:])
        left = {
            container.labels["io.kubernetes.container.name"]
            for container in await node.runtime.list_containers()
        }
        assert left == {"small", "crash"}
        assert len(await node.runtime.list_containers()) == 3
        assert not log.exists()
        assert node.pod("over").status == over.status

    images = {"job": exits(0), "crash": HollowImage((Script(exit_code=1, after=1), Script()), present=True)}
    play(story, small=writes(1), unused=HollowImage(present=True), **images)


def test_the_image_of_a_volume_survives_pressure(play: Play) -> None:
    """R-VOL-2"""

    async def story(node: Node) -> None:
        volume = {"name": "data", "image": {"reference": "files:1"}}
        mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        spec = {"volumes": [volume], "priorityClassName": "system-node-critical"}
        await node.create("reader", {"name": "small", **mount}, **spec)
        await node.until("reader", node.is_ready)
        await node.crash()
        node.config = replace(node.config, eviction_hard=ALWAYS_LOW)
        await node.boot()
        await asyncio.sleep(200)
        assert {tag for image in await node.runtime.list_images() for tag in image.repo_tags} == {
            "small:1",
            "files:1",
        }

    files = HollowImage(present=True)
    play(story, small=writes(1), files=files, unused=HollowImage(present=True))


def test_a_soft_threshold_waits_for_its_grace_period_and_then_gives_pods_some(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("first", terminationGracePeriodSeconds=600)
        await node.until("first", node.is_ready)
        await node.crash()
        soft = {
            "eviction_soft": ALWAYS_LOW,
            "eviction_soft_grace": {"nodefs.available": timedelta(minutes=3)},
        }
        node.config = replace(node.config, **soft, eviction_max_pod_grace=40)
        began = node.time.now()
        await node.boot()
        assert await pressed(node, after=170)
        assert node.is_ready(node.pod("first"))
        pod = await node.until("first", node.has_phase("Failed"))
        waited = node.time.now() - began
        assert timedelta(minutes=3, seconds=40) <= waited <= timedelta(minutes=4)
        assert pod.status.reason == "Evicted"

    play(story, app=HollowImage((Script(written_bytes=1 << 20, term_code=None),), present=True))


def test_pressure_is_over_a_while_after_the_minimum_is_free_again(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        left = [50]
        monkeypatch.setattr(thresholds, "file_system", lambda path: FileSystem(1000, left[0], 0, 0))
        await node.crash()
        limits = {
            "eviction_hard": {"nodefs.available": "100"},
            "eviction_minimum_reclaim": {"nodefs.available": "100"},
            "eviction_pressure_transition": timedelta(minutes=1),
        }
        node.config = replace(node.config, **limits)
        await node.boot()
        assert await pressed(node, after=20)
        left[0] = 150
        assert await pressed(node, after=300), "the minimum is not free"
        left[0] = 250
        assert await pressed(node, after=50)
        assert not await pressed(node, after=30)

    play(story)
