"""What the Node says the runtime and the kubelet can, and that it is taken back when it is no longer so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.node.reporter import LeaseKeeper
from podling.model.codec.json import to_data
from podling.model.errors import StatusError
from podling.model.types.node import Node as ApiNode

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

CAN_ALL = [{"name": "", "features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}}]
NEXT_CHECK = 11


async def told(node: Node) -> dict[str, Any]:
    status: dict[str, Any] = to_data((await node.client.get(ApiNode, "n1")).status)
    return status


def test_a_namespace_that_comes_a_moment_later_is_no_news(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    """A new cluster lets its nodes in before it has made the namespace of their leases."""

    class NoNamespace:
        async def get(self, *asked: Any) -> Any:
            raise StatusError(404, "NotFound", 'leases.coordination.k8s.io "n1" not found')

        async def create(self, lease: Any) -> Any:
            raise StatusError(404, "NotFound", 'namespaces "kube-node-lease" not found')

    async def story(node: Node) -> None:
        keeper = LeaseKeeper(NoNamespace(), node.time, node.config)  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(keeper.run(ApiNode()))
            await asyncio.sleep(2)
            assert "not renewed" not in caplog.text
            await asyncio.sleep(20)
            keeping.cancel()
        assert 'not renewed: namespaces "kube-node-lease" not found' in caplog.text

    play(story)


def test_the_node_says_what_its_runtime_can(play: Play) -> None:
    async def story(node: Node) -> None:
        status = await told(node)
        assert status["runtimeHandlers"] == CAN_ALL
        assert status["features"] == {"supplementalGroupsPolicy": True}
        kata = pb.RuntimeHandlerFeatures(user_namespaces=True)
        node.runtime.handlers = [
            pb.RuntimeHandler(name="kata", features=kata),
            pb.RuntimeHandler(name="runc"),
        ]
        await asyncio.sleep(NEXT_CHECK)
        assert (await told(node))["runtimeHandlers"] == [
            {"name": "kata", "features": {"recursiveReadOnlyMounts": False, "userNamespaces": True}},
            {"name": "runc", "features": {"recursiveReadOnlyMounts": False, "userNamespaces": False}},
        ]

    play(story)


def test_a_runtime_that_came_back_older_is_not_said_to_do_what_the_newer_could(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        async def old() -> pb.StatusResponse:
            ready = [pb.RuntimeCondition(type=name, status=True) for name in ("RuntimeReady", "NetworkReady")]
            return pb.StatusResponse(status=pb.RuntimeStatus(conditions=ready))

        monkeypatch.setattr(node.runtime, "status", old)
        await asyncio.sleep(NEXT_CHECK)
        status = await told(node)
        assert "runtimeHandlers" not in status
        assert "features" not in status

    play(story)


def test_of_a_runtime_that_is_away_the_node_says_what_is_known(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        async def nothing() -> Any:
            raise RuntimeFault("UNAVAILABLE", "connection refused")

        monkeypatch.setattr(node.runtime, "status", nothing)
        await asyncio.sleep(NEXT_CHECK)
        status = await told(node)
        assert status["runtimeHandlers"] == CAN_ALL
        assert status["nodeInfo"]["containerRuntimeVersion"] == "hollow://Unknown"

    play(story)


def test_the_node_declares_what_is_new_in_its_version(play: Play) -> None:
    async def story(node: Node) -> None:
        assert (await told(node))["declaredFeatures"] == [
            "ExtendWebSocketsToKubelet",
            "InPlacePodLevelResourcesVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
            "RestartAllContainersOnContainerExits",
        ]

    play(story)
