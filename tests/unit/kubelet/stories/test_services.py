"""What containers are told of services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from podling.client.transport import JSON, Answer, Transport
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.script import HollowImage
from podling.kubelet.cri_config.environment import service_variables
from podling.kubelet.node import shared
from podling.kubelet.node.shared import SYNC_SECONDS
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.service import Service, ServicePort, ServiceSpec

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

SERVICES = "/api/v1/services"
UNREAD = "services have not yet been read at least once, cannot construct envvars"


async def serve(node: Node, name: str, address: str) -> None:
    spec = ServiceSpec(cluster_ip=address, ports=[ServicePort(port=80)])
    await node.client.create(Service(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))


def told(node: Node, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """What each container that is made from now on is told of services, by its name and attempt."""
    found: dict[str, dict[str, str]] = {}
    create = node.runtime.create_container

    async def noted(sandbox: str, config: pb.ContainerConfig, about_sandbox: pb.PodSandboxConfig) -> str:
        about = {pair.key: pair.value for pair in config.envs if "_SERVICE_HOST" in pair.key}
        found[f"{config.metadata.name}#{config.metadata.attempt}"] = about
        return await create(sandbox, config, about_sandbox)

    monkeypatch.setattr(node.runtime, "create_container", noted)
    return found


class Gate:
    """The way to the API server. Questions about services wait while it is `shut`, and are `counted`."""

    def __init__(self, api: Transport) -> None:
        self._api = api
        self.open = asyncio.Event()
        self.counted: list[str] = []

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        if path == SERVICES:
            self.counted.append("list")
            await self.open.wait()
        return await self._api.request(method, path, query, body, content_type)

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        if path == SERVICES:
            self.counted.append("watch")
        async for piece in self._api.stream(path, query):
            yield piece

    async def close(self) -> None: ...


def gate(node: Node) -> Gate:
    """The kubelet's way to its server, shut for services."""
    made = Gate(node.api)
    node.client = type(node.client)(made)
    return made


def test_a_container_is_told_of_what_there_is_when_it_is_made(
    play: Play, exits: Callable[..., HollowImage], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        found = told(node, monkeypatch)
        await serve(node, "web", "10.96.1.1")
        await node.create("job", {"name": "job"}, initContainers=[node.container("one")])
        await node.until("job", lambda pod: any(s.state.running for s in pod.status.init_container_statuses))
        await serve(node, "late", "10.96.1.2")
        await node.until("job", lambda pod: any(s.state.running for s in pod.status.container_statuses))
        await node.client.delete(Service, "web", "default")
        await node.until("job", lambda pod: pod.status.container_statuses[0].restart_count == 1)
        web, late = {"WEB_SERVICE_HOST": "10.96.1.1"}, {"LATE_SERVICE_HOST": "10.96.1.2"}
        assert found == {"one#0": web, "job#0": {**web, **late}, "job#1": late}

    play(story, one=exits(0, after=5), job=exits(0, after=5))


def test_a_variable_may_refer_to_a_service(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(node: Node) -> None:
        found = told(node, monkeypatch)
        await serve(node, "web", "10.96.1.1")
        env = [
            {"name": "MY_SERVICE_HOST", "value": "at $(WEB_SERVICE_HOST)"},
            {"name": "WEB_SERVICE_HOST", "value": "mine"},
        ]
        await node.create("app", {"env": env})
        await node.until("app", node.is_ready)
        assert found == {"app#0": {"MY_SERVICE_HOST": "at 10.96.1.1", "WEB_SERVICE_HOST": "mine"}}

    play(story)


def test_a_container_waits_for_the_services_to_be_read(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet that has just started has not, and a container that is not told of the API server is lost."""

    async def story(node: Node) -> None:
        await serve(node, "web", "10.96.1.1")
        found, way = told(node, monkeypatch), gate(node)
        await node.boot()
        await node.create("app")
        await asyncio.sleep(SYNC_SECONDS - 1)
        assert found == {}
        way.open.set()
        await node.until("app", node.is_ready)
        assert found == {"app#0": {"WEB_SERVICE_HOST": "10.96.1.1"}}
        assert not any(event.startswith("Warning") for event in await node.events("app"))

    play(story, boot=False)


def test_services_that_cannot_be_read_are_what_a_container_waits_for(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        await serve(node, "web", "10.96.1.1")
        found, way = told(node, monkeypatch), gate(node)
        await node.boot()
        await node.create("app")
        pod = await node.until("app", node.waits_for("CreateContainerConfigError"))
        assert node.waiting(pod.status.container_statuses[0].state).message == UNREAD
        assert f"Warning Failed spec.containers{{app}} Error: {UNREAD}" in await node.events("app")
        way.open.set()
        await node.until("app", node.is_ready)
        assert found == {"app#0": {"WEB_SERVICE_HOST": "10.96.1.1"}}

    play(story, boot=False)


def test_a_static_pod_waits_for_no_services(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(node: Node) -> None:
        found, way = told(node, monkeypatch), gate(node)
        directory: Path = node.config.root_dir.parent / "manifests"
        directory.mkdir()
        spec = {"containers": [{"name": "app", "image": "app:1"}]}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
        (directory / "web.yaml").write_text(json.dumps(manifest))
        node.config = replace(node.config, pod_manifest_path=directory)
        await node.boot()
        await node.until("web-n1", node.is_ready)
        assert found == {"app#0": {}} and not way.open.is_set()

    play(story, boot=False)


def test_what_services_say_is_made_once_for_all_pods(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def noted(pod: Pod, *others: Any) -> dict[str, str]:
        made.append(pod.metadata.name)
        return service_variables(pod, *others)

    monkeypatch.setattr(shared, "service_variables", noted)

    async def story(node: Node) -> None:
        way = gate(node)
        way.open.set()
        await node.boot()
        for i in range(5):
            await node.create(f"app-{i}")
        for i in range(5):
            await node.until(f"app-{i}", node.is_ready)
        assert way.counted == ["list", "watch"] and len(made) == 1

    play(story, boot=False)
