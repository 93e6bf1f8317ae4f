"""The floor under what users wait for: the same CRI calls from one asyncio client, with nothing else in
between. They ask for what a kubelet must ask for: seccomp for the sandbox, paths of /proc masked, cgroup
values, labels, the kubelet's own mounts. `bare` is what asks for nothing but image and command.

`measuring(runtime, ...)` is for other benchmarks, which take turns with the floor on the same machine. Alone
(`python bench/cri_floor.py`) it runs on a private containerd with podling's own network.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import uvloop
from table import Measurement, report

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.archive import load_images
from podling.cri.images.build import ImageConfig, Symlink, build_image
from podling.cri.interface import EventKind, Runtime
from podling.kubelet.cri_config.security import MASKED_PATHS, READ_ONLY_PATHS
from podling.machine import node_runtime
from podling.machine.instance import SUBNETS, Instance

IMAGE = "podling.local/bench:1"
AT_ONCE = 30
INITS = (0, 1, 2, 5)
"""How many init containers the measured pods have."""
DELETED = 2
"""The pod whose deletion is measured has as many."""
ROUNDS = 10
_names = count()
_APP = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]
_NAMESPACES = pb.NamespaceOption(network=pb.POD, pid=pb.CONTAINER, ipc=pb.POD)
_BEST_EFFORT = pb.LinuxContainerResources(cpu_period=100_000, cpu_shares=2)
_OOM_SCORE = 1000
_VARIABLES = {f"KUBERNETES_PORT_443_{n}": "192.0.2.2" for n in range(8)}
_MOUNTS = {
    "/var/run/secrets/kubernetes.io/serviceaccount": "token",
    "/etc/hosts": "hosts",
    "/dev/termination-log": "message",
}


@dataclass
class Floor:
    """Samples in milliseconds; `burst` in pods a second."""

    run_sandbox: list[float] = field(default_factory=list)
    create: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    ready: dict[int, list[float]] = field(default_factory=lambda: {inits: [] for inits in INITS})
    """By the number of init containers."""
    bare: list[float] = field(default_factory=list)
    """A pod without init containers, made by calls that ask for nothing."""
    ephemeral: list[float] = field(default_factory=list)
    delete: list[float] = field(default_factory=list)
    burst: list[float] = field(default_factory=list)

    def measurements(self) -> list[Measurement]:
        latencies = {
            "run sandbox": self.run_sandbox,
            "create container": self.create,
            "start container": self.start,
            **{f"pod, {inits} init + 1 app: start returned": self.ready[inits] for inits in INITS},
            "the same, 0 init, asking for nothing": self.bare,
            "ephemeral container with target": self.ephemeral,
            "stop, stop sandbox, remove": self.delete,
        }
        rows = [Measurement(name, "ms", samples) for name, samples in latencies.items() if samples]
        return [*rows, Measurement(f"{AT_ONCE} pods at once", "/s", self.burst)]


class Pods:
    """Makes pods by raw calls, and keeps the times of the calls."""

    def __init__(
        self,
        runtime: Runtime,
        image: str,
        cgroup_parent: str,
        logs: Path,
        floor: Floor,
        *,
        bare: bool = False,
    ) -> None:
        self._runtime = runtime
        self._image = image
        self._cgroup_parent = cgroup_parent
        self._logs = logs
        self._floor = floor
        self._bare = bare
        self._exits: dict[str, asyncio.Event] = {}

    async def listen(self, listening: asyncio.Event) -> None:
        async for event in self._runtime.events():
            if event.kind is EventKind.RELIST:
                listening.set()
            elif event.kind is EventKind.EXITED:
                self._exit_of(event.container_id).set()

    async def sandbox(self) -> tuple[str, pb.PodSandboxConfig]:
        name = f"floor-{next(_names)}"
        config = pb.PodSandboxConfig(
            metadata=pb.PodSandboxMetadata(name=name, uid=name, namespace="bench"),
            hostname=name,
            log_directory=str(self._logs / name),
            linux=pb.LinuxPodSandboxConfig(
                cgroup_parent=f"{self._cgroup_parent}/{name}",
                security_context=pb.LinuxSandboxSecurityContext(namespace_options=_NAMESPACES),
            ),
        )
        if not self._bare:
            config.labels.update(_labels(name))
            config.dns_config.servers.append("192.0.2.1")
            config.linux.resources.MergeFrom(_BEST_EFFORT)
            config.linux.security_context.seccomp.profile_type = pb.SecurityProfile.RuntimeDefault
            config.linux.security_context.seccomp.SetInParent()
        async with _timed(self._floor.run_sandbox):
            return await self._runtime.run_pod_sandbox(config), config

    async def container(
        self, sandbox: tuple[str, pb.PodSandboxConfig], name: str, command: list[str], target: str = ""
    ) -> str:
        sandbox_id, sandbox_config = sandbox
        options = pb.NamespaceOption()
        options.CopyFrom(_NAMESPACES)
        if target:
            options.pid, options.target_id = pb.TARGET, target
        config = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name=name),
            image=pb.ImageSpec(image=self._image),
            command=command,
            log_path=f"{name}/0.log",
            linux=pb.LinuxContainerConfig(
                security_context=pb.LinuxContainerSecurityContext(namespace_options=options)
            ),
        )
        if not self._bare:
            self._ask(config)
        async with _timed(self._floor.create):
            container_id = await self._runtime.create_container(sandbox_id, config, sandbox_config)
        async with _timed(self._floor.start):
            await self._runtime.start_container(container_id)
        return container_id

    async def init(self, sandbox: tuple[str, pb.PodSandboxConfig], name: str) -> None:
        await self._exit_of(await self.container(sandbox, name, ["true"])).wait()

    async def delete(self, sandbox_id: str, container_ids: list[str]) -> None:
        for container_id in container_ids:
            await self._runtime.stop_container(container_id, 30)
        await self._runtime.stop_pod_sandbox(sandbox_id)
        await self._runtime.remove_pod_sandbox(sandbox_id)

    def _ask(self, config: pb.ContainerConfig) -> None:
        """What Kubernetes' kubelet asks for, of any container."""
        config.labels.update(_labels(config.metadata.name))
        config.annotations.update(_labels(config.metadata.name))
        config.envs.extend(pb.KeyValue(key=key, value=value) for key, value in _VARIABLES.items())
        for inside, outside in _MOUNTS.items():
            config.mounts.add(container_path=inside, host_path=str(self._logs / outside))
        config.linux.resources.MergeFrom(_BEST_EFFORT)
        config.linux.resources.oom_score_adj = _OOM_SCORE
        config.linux.security_context.masked_paths.extend(MASKED_PATHS)
        config.linux.security_context.readonly_paths.extend(READ_ONLY_PATHS)

    def _exit_of(self, container_id: str) -> asyncio.Event:
        return self._exits.setdefault(container_id, asyncio.Event())


@asynccontextmanager
async def measuring(runtime: Runtime, image: str, cgroup_parent: str, logs: Path) -> AsyncIterator[Measuring]:
    """`image` has `sh`, `sleep` and `true`, and is present. What was made is removed again."""
    (logs / "token").mkdir(parents=True)
    for file in ("hosts", "message"):
        (logs / file).touch()
    measured = Measuring(runtime, image, cgroup_parent, logs)
    async with asyncio.TaskGroup() as group:
        listening = asyncio.Event()
        listener = group.create_task(measured.pods.listen(listening))
        await listening.wait()
        yield measured
        listener.cancel()


class Measuring:
    """One round after the other, into `floor`."""

    def __init__(self, runtime: Runtime, image: str, cgroup_parent: str, logs: Path) -> None:
        self.floor = Floor()
        self.pods = Pods(runtime, image, cgroup_parent, logs, self.floor)
        # The calls of a burst wait for each other: they say nothing of a single call.
        self._crowd = Pods(runtime, image, cgroup_parent, logs, Floor())
        self._bare = Pods(runtime, image, cgroup_parent, logs, Floor(), bare=True)

    async def round(self) -> None:
        for inits in INITS:
            await _pod(self.pods, self.floor, inits)
        async with _timed(self.floor.bare):
            sandbox = await self._bare.sandbox()
            app = await self._bare.container(sandbox, "app", _APP)
        await self._bare.delete(sandbox[0], [app])

    async def burst(self) -> None:
        await _at_once(self._crowd, self.floor)


async def _pod(pods: Pods, floor: Floor, inits: int) -> None:
    async with _timed(floor.ready[inits]):
        sandbox = await pods.sandbox()
        for number in range(inits):
            await pods.init(sandbox, f"i{number}")
        containers = [await pods.container(sandbox, "app", _APP)]
    if inits == 0:
        async with _timed(floor.ephemeral):
            containers.append(await pods.container(sandbox, "debugger", _APP, target=containers[0]))
    async with _timed(floor.delete if inits == DELETED else []):
        await pods.delete(sandbox[0], containers)


async def _at_once(pods: Pods, floor: Floor) -> None:
    async def one() -> tuple[str, str]:
        sandbox = await pods.sandbox()
        return sandbox[0], await pods.container(sandbox, "app", _APP)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for _ in range(AT_ONCE)]
    floor.burst.append(AT_ONCE / (time.perf_counter() - began))
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            sandbox_id, app = task.result()
            group.create_task(pods.delete(sandbox_id, [app]))


def _labels(name: str) -> dict[str, str]:
    return {f"io.kubernetes.pod.{key}": name for key in ("name", "namespace", "uid", "container", "hash")}


@asynccontextmanager
async def _timed(samples: list[float]) -> AsyncIterator[None]:
    began = time.perf_counter()
    yield
    samples.append((time.perf_counter() - began) * 1000)


def bench_image() -> bytes:
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    links = {f"bin/{name}": Symlink("busybox") for name in ("sh", "sleep", "true")}
    return build_image(IMAGE, {"bin/busybox": busybox, **links}, ImageConfig(env=["PATH=/bin"]))


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        instance = Instance.at(Path(name))
        containerd = await node_runtime.start(instance, SUBNETS[-1], {})
        try:
            archive = Path(name) / "bench.tar"
            archive.write_bytes(bench_image())
            await load_images(containerd.settings.socket, archive)
            runtime = GrpcRuntime(str(containerd.settings.socket))
            async with measuring(runtime, IMAGE, instance.cgroup, Path(name) / "logs") as measured:
                for _ in range(ROUNDS):
                    await measured.round()
                for _ in range(max(1, ROUNDS // 4)):
                    await measured.burst()
            await runtime.close()
        finally:
            await node_runtime.end(instance)
    report("cri_floor", measured.floor.measurements())


if __name__ == "__main__":
    uvloop.run(main())
