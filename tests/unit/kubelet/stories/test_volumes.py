"""Volumes follow what they are made of for as long as their pod lives; R-SYS-2."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from podling.cri.hollow.script import HollowImage
from podling.kubelet.pod import directories
from podling.model.gates import Gates
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.process.mounts import mounts_under, unmount_under

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

CONFIG = {"name": "v", "configMap": {"name": "cm"}}
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


@pytest.fixture(autouse=True)
def unmounted(tmp_path: Path) -> Iterator[None]:
    """A story ends in the middle of its pods' lives."""
    yield
    unmount_under(tmp_path)


def config(text: str, **more: Any) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="cm", namespace="default"), data={"key": text}, **more)


def place(node: Node, pod: Pod, plugin: str = "configmap") -> Path:
    path: Path = node.config.pods_dir / pod.metadata.uid / f"volumes/kubernetes.io~{plugin}/v"
    return path


async def until_holds(path: Path, text: str | None) -> None:
    """Files tell nobody of their changes; time passes meanwhile, threads do their work."""
    while (path.read_text() if path.exists() else None) != text:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_a_change_reaches_the_volume_at_once_and_a_deletion_leaves_it(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.client.create(config("one"))
        await node.create("web", MOUNTED, volumes=[CONFIG])
        pod = await node.until("web", node.is_ready)
        file = place(node, pod) / "key"
        assert file.read_text() == "one"
        await node.client.update(config("two"))
        began = asyncio.get_running_loop().time()
        await until_holds(file, "two")
        assert asyncio.get_running_loop().time() - began < 1
        await node.client.delete(ConfigMap, "cm", "default")
        await asyncio.sleep(1)
        assert file.read_text() == "two"
        assert any('configmap "cm" not found' in event for event in await node.events("web"))
        await node.client.create(config("three"))
        await until_holds(file, "three")

    play(story)


def test_a_missing_object_starts_the_pod_the_moment_it_appears(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", MOUNTED, volumes=[CONFIG])
        await asyncio.sleep(301)
        await node.client.create(config("one"))
        began = asyncio.get_running_loop().time()
        await node.until("web", node.is_ready)
        assert asyncio.get_running_loop().time() - began < 1

    play(story)


def test_an_optional_object_appears_later_and_an_immutable_one_is_not_watched(play: Play) -> None:
    async def story(node: Node) -> None:
        optional = {"name": "v", "configMap": {"name": "cm", "optional": True}}
        await node.create("web", MOUNTED, volumes=[optional])
        pod = await node.until("web", node.is_ready)
        await node.client.create(config("one", immutable=True))
        await until_holds(place(node, pod) / "key", "one")
        assert not _watches()

    play(story)


def test_one_watch_serves_all_pods_and_ends_with_the_last(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.client.create(config("one"))
        for name in ("a", "b"):
            await node.create(name, MOUNTED, volumes=[CONFIG])
        for name in ("a", "b"):
            await node.until(name, node.is_ready)
        assert len(_watches()) == 1
        for name in ("a", "b"):
            assert len(_watches()) == 1
            await node.client.delete(Pod, name, "default", grace_seconds=0)
            await node.until_gone(name)
            await node.until_idle(name)
        await asyncio.sleep(0)
        assert not _watches()

    play(story)


def _watches() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("watch ConfigMap")]


def test_labels_of_a_running_pod_are_seen_in_it(play: Play) -> None:
    async def story(node: Node) -> None:
        items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
        await node.create("web", MOUNTED, volumes=[{"name": "v", "downwardAPI": {"items": items}}])
        pod = await node.until("web", node.is_ready)
        await node.client.patch(Pod, "web", "default", {"metadata": {"labels": {"a": "1"}}})
        await until_holds(place(node, pod, "downward-api") / "labels", 'a="1"')

    play(story)


def test_a_token_is_bound_to_its_pod_and_renewed_at_four_fifths_of_its_life(play: Play) -> None:
    async def story(node: Node) -> None:
        token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 1000, "audience": "me"}}
        volume = {"name": "v", "projected": {"sources": [token]}}
        await node.create("web", MOUNTED, volumes=[volume])
        pod = await node.until("web", node.is_ready)
        file = place(node, pod, "projected") / "token"
        first = file.read_text()
        claims = jwt.decode(first, options={"verify_signature": False})
        assert claims["aud"] == ["me"] and claims["exp"] - claims["iat"] == 1000
        assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": pod.metadata.uid}
        await asyncio.sleep(790)
        assert file.read_text() == first
        await asyncio.sleep(15)
        while (second := file.read_text()) == first:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        later = jwt.decode(second, options={"verify_signature": False})
        assert later["iat"] - claims["iat"] == pytest.approx(800, abs=2)

    play(story)


def test_a_token_that_cannot_be_had_keeps_the_pod_waiting_and_says_why(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        volume = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
        ask = node.kubelet._client.ask

        async def refuse(*arguments: Any) -> Any:
            raise OSError("connection refused")

        monkeypatch.setattr(node.kubelet._client, "ask", refuse)
        await node.create("web", MOUNTED, volumes=[volume])
        await asyncio.sleep(5)
        why = 'MountVolume.SetUp failed for volume "v" : failed to fetch token: connection refused'
        assert f"Warning FailedMount {why}" in await node.events("web")
        monkeypatch.setattr(node.kubelet._client, "ask", ask)
        await node.until("web", node.is_ready)

    play(story)


def test_a_pod_with_claims_waits_for_drivers_that_nobody_has(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", resourceClaims=[{"name": "d", "resourceClaimName": "c"}])
        await node.until("web", node.waits_for("ContainerCreating"))
        await asyncio.sleep(5)
        why = "Failed to prepare dynamic resources: podling has no DRA drivers"
        assert f"Warning FailedPrepareDynamicResources {why}" in await node.events("web")

    play(story)


def test_volume_containers_fill_their_volumes_before_all_else(
    play: Play, exits: Callable[..., HollowImage]
) -> None:
    """R-VOL-1"""

    async def story(node: Node) -> None:
        def volume(name: str) -> dict[str, Any]:
            mount = {"name": name, "mountPath": "/v"}
            return {"name": name, "container": {**node.container(name), "volumeMounts": [mount]}}

        inits = [node.container("one")]
        await node.create("web", volumes=[volume("left"), volume("right")], initContainers=inits)
        pod = await node.until("web", node.is_ready)
        starts = [call for call in node.runtime.calls if call.startswith("start ")]
        assert sorted(starts[:2]) == ["start left#0", "start right#0"]
        assert starts[2:] == ["start right#1", "start one#0", "start app#0"]
        statuses = pod.status.init_container_statuses
        assert [status.name for status in statuses] == ["left", "right", "one"]
        assert all(node.terminated(status.state).exit_code == 0 for status in statuses)
        assert statuses[1].restart_count == 1
        assert place(node, pod, "empty-dir").with_name("left").is_dir()
        waited = next(p for name, p in node.history if p is not None and p.status.conditions)
        message = "containers with incomplete status: [left right one]"
        assert any(c.message == message for c in waited.status.conditions)

    gates = Gates({"ContainerVolumes": True})
    play(story, gates=gates, left=exits(0), right=exits(1, 0), one=exits(0))


def test_a_volume_container_that_fails_for_good_fails_its_pod(
    play: Play, exits: Callable[..., HollowImage]
) -> None:
    """R-VOL-1, R-INIT-2"""

    async def story(node: Node) -> None:
        container = {**node.container("left"), "volumeMounts": [{"name": "left", "mountPath": "/v"}]}
        volumes = [{"name": "left", "container": container}]
        await node.create("web", volumes=volumes, restartPolicy="Never")
        await node.until("web", node.has_phase("Failed"))
        assert "start app#0" not in node.runtime.calls

    play(story, gates=Gates({"ContainerVolumes": True}), left=exits(3))


def test_status_says_how_far_a_mount_is_read_only(play: Play) -> None:
    async def story(node: Node) -> None:
        kinds: dict[str, dict[str, Any]] = {
            "plain": {},
            "ro": {"readOnly": True},
            "all": {"readOnly": True, "recursiveReadOnly": "Enabled"},
        }
        mounts = [{"name": "v", "mountPath": f"/{name}", **how} for name, how in kinds.items()]
        await node.create("web", {"volumeMounts": mounts}, volumes=[{"name": "v", "emptyDir": {}}])
        pod = await node.until("web", node.is_ready)
        [status] = pod.status.container_statuses
        seen = {mount.mount_path: mount.recursive_read_only for mount in status.volume_mounts}
        assert seen == {"/plain": None, "/ro": "Disabled", "/all": "Enabled"}

    play(story)


def test_mounts_of_a_pod_that_went_while_no_kubelet_ran_are_taken_away(play: Play) -> None:
    """R-INIT-11: whatever the crash point, nothing is left."""

    async def story(node: Node) -> None:
        memory = {"name": "v", "emptyDir": {"medium": "Memory"}}
        await node.create("web", {"volumeMounts": MOUNTED["volumeMounts"]}, volumes=[memory])
        pod = await node.until("web", node.is_ready)
        directory = node.config.pods_dir / pod.metadata.uid
        assert mounts_under(directory)
        await node.crash()
        await node.client.delete(Pod, "web", "default", grace_seconds=0)
        await node.boot()
        await node.until_idle("web")
        assert not directory.exists() and not mounts_under(directory)

    play(story)


def test_a_volume_that_is_busy_is_unmounted_later_and_its_pod_stays_until_then(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = 3

    def unmount(place: Path) -> None:
        nonlocal busy
        if busy:
            busy -= 1
            raise OSError(errno.EBUSY, "target is busy", str(place))
        unmount_under(place)

    monkeypatch.setattr(directories, "unmount_under", unmount)

    async def story(node: Node) -> None:
        memory = {"name": "v", "emptyDir": {"medium": "Memory"}}
        await node.create("web", {"volumeMounts": MOUNTED["volumeMounts"]}, volumes=[memory])
        pod = await node.until("web", node.is_ready)
        directory = node.config.pods_dir / pod.metadata.uid
        began = asyncio.get_running_loop().time()
        await node.client.delete(Pod, "web", "default", grace_seconds=1)
        await node.until_gone("web")
        assert asyncio.get_running_loop().time() - began >= 0.1 + 0.2 + 0.4
        await node.until_idle("web")
        assert not busy and not mounts_under(directory) and not directory.exists()

    play(story)
