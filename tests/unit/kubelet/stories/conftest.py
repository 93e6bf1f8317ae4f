"""A node in memory: a real API server, a real kubelet, and a runtime that does as it is told, in virtual
time.

A test is a story told to `play`. Time jumps to the next timer whenever nothing else can happen, so ten
minutes of back-off take none, and a story that waits for what can never happen fails at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage, Script
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import this_machine
from podling.kubelet.kubelet import Kubelet
from podling.kubelet.node.status import allocatable
from podling.kubelet.worker.context import Admit, admit_all
from podling.model.codec import json as model_json
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.admission_plugins import DEFAULT_PLUGINS
from podling.model.types.core import Event, Namespace, ServiceAccount
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import ServiceCIDR, ServiceCIDRSpec
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerState, ContainerStateTerminated, ContainerStateWaiting
from podling.storage.memory import MemoryStorage
from virtual_time import VirtualLoop

T = TypeVar("T")
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NODE = "n1"
LONGEST_STORY = 4 * 3600.0


class LoopTime:
    """The clock of everyone and the timers of the runtime: the loop's time, never the same twice."""

    def __init__(self) -> None:
        self._ticks = 0

    def now(self) -> datetime:
        self._ticks += 1
        return START + timedelta(seconds=asyncio.get_running_loop().time(), microseconds=self._ticks)

    def call_later(self, seconds: float, what: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, what)


async def no_streams(context: object, target: object) -> Any:
    raise AssertionError("nothing here is connected to")


class Node:
    """What a story is told with. `runtime.calls` says what was asked of the runtime, in order."""

    def __init__(
        self,
        directory: Path,
        client: Client,
        api: LocalTransport,
        runtime: HollowRuntime,
        time: LoopTime,
        tasks: asyncio.TaskGroup,
        gates: Gates,
    ) -> None:
        self.client = client
        self.api = api
        self.runtime = runtime
        self.time = time
        self.config = KubeletConfig(
            NODE,
            directory / "kubelet",
            directory / "logs",
            node_ip="192.0.2.1",
            cluster_dns=("10.96.0.10",),
            cgroup_mount=directory,
            gates=gates,
            image_gc_high=100,
            eviction_hard={},
        )
        self._tasks = tasks
        self._pods = Informer(client, Pod)
        self._changed = asyncio.Event()
        self.history: list[tuple[str, Pod | None]] = []
        self._pods.subscribe(self._note)
        self._running: asyncio.Task[None] | None = None
        self.admit: Admit = admit_all
        self.kubelet: Kubelet
        tasks.create_task(self._pods.run())

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod
        self.history.append((pod.metadata.name, new))
        self._changed.set()

    async def boot(self, runtime: Any = None) -> None:
        """A kubelet starts on what the node's directories and runtime hold."""
        self.start(runtime)
        await self.kubelet.wait_ready()

    def start(self, runtime: Any = None) -> None:
        runtime = runtime or self.runtime
        recorder = EventRecorder(self.client, self.time, "kubelet", NODE)
        self.kubelet = Kubelet(self.client, runtime, recorder, self.time, self.config, self.admit)
        self._running = self._tasks.create_task(self._both(self.kubelet, recorder))

    async def _both(self, kubelet: Kubelet, recorder: EventRecorder) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(recorder.run())
            tasks.create_task(kubelet.run())

    async def crash(self) -> None:
        """The kubelet is gone, whatever it was doing; what runs goes on."""
        assert self._running is not None
        self._running.cancel()
        await asyncio.wait((self._running,))

    def kill(self) -> None:
        """As `crash`, from within the kubelet."""
        assert self._running is not None
        self._running.cancel()

    async def create(self, name: str, *containers: dict[str, Any], **spec: Any) -> Pod:
        """A container without a name is `app`; without an image, its image is `NAME:1`."""
        apps = [self.container(**container) for container in containers or ({},)]
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": NODE, "containers": apps, **spec},
        }
        return await self.client.create(model_json.decode(json.dumps(body).encode(), Pod))

    @staticmethod
    def container(name: str = "app", image: str = "", **more: Any) -> dict[str, Any]:
        return {"name": name, "image": image or f"{name}:1", **more}

    def pod(self, name: str) -> Pod:
        found = self._pods.get("default", name)
        assert found, f"{name} is gone"
        return found

    async def until(self, name: str, holds: Callable[[Pod], bool]) -> Pod:
        """The pod, as soon as it is so."""
        while True:
            pod = self._pods.get("default", name)
            if pod is not None and holds(pod):
                return pod
            self._changed.clear()
            await self._changed.wait()

    async def until_gone(self, name: str) -> None:
        while self._pods.get("default", name) is not None:
            self._changed.clear()
            await self._changed.wait()

    async def until_idle(self, name: str) -> None:
        """The kubelet has nothing left of a pod that is gone."""
        while any(worker.pod.metadata.name == name for worker in self.workers()):  # noqa: ASYNC110
            await asyncio.sleep(1)

    def workers(self) -> list[Any]:
        assert self.kubelet.workers is not None
        return list(self.kubelet.workers)

    async def events(self, name: str) -> list[str]:
        await asyncio.sleep(0)
        found = (await self.client.list(Event, "default")).items
        return [
            f"{e.type} {e.reason} {e.involved_object.field_path} {e.message}".replace("  ", " ")
            for e in found
            if e.involved_object.name == name
        ]

    def allocatable(self, resource: str) -> int:
        """What all pods may have together, CPU in thousandths."""
        amount = allocatable(self.config, this_machine(self.config.root_dir))[resource]
        return amount.milli_value() if resource == "cpu" else amount.value()

    @staticmethod
    def is_ready(pod: Pod) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)

    @staticmethod
    def waiting(state: ContainerState) -> ContainerStateWaiting:
        assert state.waiting, state
        return state.waiting

    @staticmethod
    def terminated(state: ContainerState) -> ContainerStateTerminated:
        assert state.terminated, state
        return state.terminated

    @staticmethod
    def has_phase(phase: str) -> Callable[[Pod], bool]:
        return lambda pod: pod.status.phase == phase

    @staticmethod
    def waits_for(reason: str) -> Callable[[Pod], bool]:
        def holds(pod: Pod) -> bool:
            statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
            return any(s.state.waiting is not None and s.state.waiting.reason == reason for s in statuses)

        return holds


Story = Callable[[Node], Coroutine[Any, Any, None]]
Play = Callable[..., None]


PLUGINS = DEFAULT_PLUGINS - {"PodResizeValidator"}
"""What a node can never give is refused before a kubelet hears of it, if the server has this one."""


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """`play(story, image=HollowImage(...), ...)`: images not named here run until they are stopped."""

    async def perform(story: Story, images: Mapping[str, HollowImage], boot: bool, gates: Gates) -> None:
        time = LoopTime()
        server = ApiServer.build(
            MemoryStorage(), kinds(gates), clock=time, connector=no_streams, plugins=PLUGINS
        )
        await server.start()
        api = LocalTransport(server.handle, User("root", ("system:masters",)))
        client = Client(api)
        for namespace in ("default", "kube-node-lease"):
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        addresses = ServiceCIDRSpec(cidrs=["10.96.0.0/16"])
        await client.create(ServiceCIDR(metadata=ObjectMeta(name="kubernetes"), spec=addresses))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
        named = {f"{name}:1": image for name, image in images.items()}
        runtime = HollowRuntime(named, time)
        runtime.image_place = str(tmp_path)
        async with asyncio.TaskGroup() as tasks:
            node = Node(tmp_path, client, api, runtime, time, tasks, gates)
            if boot:
                await node.boot()
            try:
                async with asyncio.timeout(LONGEST_STORY):
                    await story(node)
            except TimeoutError as error:
                error.add_note(f"asked of the runtime: {runtime.calls}")
                seen = [model_json.encode(pod.status) for _, pod in node.history[-2:] if pod is not None]
                error.add_note(f"seen last: {seen}")
                raise
            raise _TheEnd
        server.close()

    def run(story: Story, boot: bool = True, gates: Gates = DEFAULT_GATES, **images: HollowImage) -> None:
        images.setdefault("app", HollowImage(present=True))
        try:
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                runner.run(perform(story, images, boot, gates))
        except* _TheEnd:
            pass

    return run


class _TheEnd(Exception):
    """The story has been told."""


@pytest.fixture
def exits() -> Callable[..., HollowImage]:
    """`exits(1, 0)`: an image whose first run ends with 1 and the second with 0, each `after` seconds."""

    def image(*codes: int, after: float = 1.0) -> HollowImage:
        return HollowImage(tuple(Script(exit_code=code, after=after) for code in codes), present=True)

    return image
