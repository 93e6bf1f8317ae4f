"""The runtime promise is one suite over every runtime: what they are asked to run is said once, here, for
each."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import ExecOutcome, HollowImage, Script
from podling.cri.interface import EventKind, Runtime, RuntimeEvent
from ports import free_port

if TYPE_CHECKING:
    from conftest import RealContainerd, UntilDone

_EXECUTES: dict[tuple[str, ...], ExecOutcome] = {
    ("sh", "-c", "echo out; echo err >&2; exit 4"): ExecOutcome(4, b"out\n", b"err\n")
}
_WORKLOADS = {
    "runs": (
        ["sh", "-c", "trap 'exit 7' TERM; : >/tmp/ready; sleep 1000 & wait"],
        Script(term_code=7, executes=_EXECUTES),
    ),
    "ignores-term": (["sleep", "1000"], Script(term_code=None)),
    "exits-0": (["true"], Script(exit_code=0)),
    "exits-3": (["sh", "-c", "exit 3"], Script(exit_code=3)),
    "prints": (
        ["sh", "-c", "echo one; echo two; echo bad >&2"],
        Script(exit_code=0, stdout=["one", "two"], stderr=["bad"]),
    ),
    "missing-program": (["/no/such/program"], None),
}
"""What a container does: the command for a runtime that runs it, the script for the one that does not."""

_UNTIL_READY = "until [ -e /tmp/ready ]; do sleep 0.01; done"
_NETWORKED = pb.NamespaceOption(network=pb.POD, pid=pb.CONTAINER, ipc=pb.POD)
_names = count()


@dataclass
class Ears:
    """Hears events; keeps those that were not asked for yet."""

    events: asyncio.Queue[RuntimeEvent] = field(default_factory=asyncio.Queue)
    kept: list[RuntimeEvent] = field(default_factory=list)

    async def next(self, kind: EventKind, container_id: str = "") -> RuntimeEvent:
        async with asyncio.timeout(20):
            while True:
                for event in self.kept:
                    if event.kind is kind and event.container_id == container_id:
                        self.kept.remove(event)
                        return event
                self.kept.append(await self.events.get())


@dataclass
class Kit:
    """A runtime under test, and how to ask it for the things every test needs."""

    runtime: Runtime
    log_directory: Path
    cgroup_parent: str
    busybox: str | None
    until_done: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]

    def sandbox_config(self, **fields: Any) -> pb.PodSandboxConfig:
        number = next(_names)
        config = pb.PodSandboxConfig(
            metadata=pb.PodSandboxMetadata(name=f"pod-{number}", uid=f"uid-{number}", namespace="default"),
            hostname=f"pod-{number}",
            log_directory=str(self.log_directory),
            linux=pb.LinuxPodSandboxConfig(
                cgroup_parent=self.cgroup_parent,
                security_context=pb.LinuxSandboxSecurityContext(namespace_options=_NETWORKED),
            ),
        )
        config.MergeFrom(pb.PodSandboxConfig(**fields))
        return config

    def container_config(self, does: str, **fields: Any) -> pb.ContainerConfig:
        """A container that does one of _WORKLOADS."""
        command, _ = _WORKLOADS[does]
        config = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name=f"{does}-{next(_names)}"),
            image=pb.ImageSpec(image=self.busybox or does),
            command=command,
            log_path=f"{does}.log",
            linux=pb.LinuxContainerConfig(
                security_context=pb.LinuxContainerSecurityContext(namespace_options=_NETWORKED)
            ),
        )
        config.MergeFrom(pb.ContainerConfig(**fields))
        return config

    @asynccontextmanager
    async def sandbox(self, **fields: Any) -> AsyncIterator[tuple[str, pb.PodSandboxConfig]]:
        """A running sandbox, gone afterwards."""
        config = self.sandbox_config(**fields)
        sandbox_id = await self.runtime.run_pod_sandbox(config)
        try:
            yield sandbox_id, config
        finally:
            await self._remove(sandbox_id)

    async def _remove(self, sandbox_id: str) -> None:
        await self.until_done(lambda: self.runtime.stop_pod_sandbox(sandbox_id))
        await self.runtime.remove_pod_sandbox(sandbox_id)

    @asynccontextmanager
    async def started(self, does: str, **fields: Any) -> AsyncIterator[str]:
        """A started container in a sandbox of its own."""
        async with self.sandbox() as (sandbox_id, config):
            container = self.container_config(does, **fields)
            container_id = await self.runtime.create_container(sandbox_id, container, config)
            await self.runtime.start_container(container_id)
            if does == "runs" and self.busybox:
                # Until it has its trap, the first process of a container ignores TERM.
                await self.runtime.exec_sync(container_id, ["sh", "-c", _UNTIL_READY], 20)
            yield container_id

    async def ended(self, container_id: str) -> pb.ContainerStatus:
        """The status of a container whose exit was told, once the runtime itself says that it has ended; its
        log is whole then. containerd says so when its shim is cleaned up; until then a call to stop the
        container may be refused, or return too early."""
        async with asyncio.timeout(20):
            status: pb.ContainerStatus = await self.runtime.container_status(container_id)
            while status.state != pb.CONTAINER_EXITED:
                await asyncio.sleep(0.01)
                status = await self.runtime.container_status(container_id)
        return status

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Ears]:
        """From when the runtime said RELIST, nothing is missed."""
        ears = Ears()

        async def listen() -> None:
            async for event in self.runtime.events():
                ears.events.put_nowait(event)

        async with asyncio.TaskGroup() as group:
            listener = group.create_task(listen())
            first = await ears.events.get()
            assert first.kind is EventKind.RELIST
            try:
                yield ears
            finally:
                listener.cancel()


def hollow_images() -> dict[str, HollowImage]:
    return {name: HollowImage([script], present=True) for name, (_, script) in _WORKLOADS.items() if script}


@pytest.fixture(params=["hollow", pytest.param("containerd", marks=pytest.mark.containerd)])
def kit(request: pytest.FixtureRequest) -> Kit:
    chosen: Kit = request.getfixturevalue(f"{request.param}_kit")
    return chosen


@pytest.fixture
def hollow_kit(tmp_path: Path, until_done: UntilDone) -> Kit:
    return Kit(HollowRuntime(hollow_images()), tmp_path / "logs", "", None, until_done)


@pytest.fixture
def containerd_kit(
    containerd: RealContainerd, containerd_runtime: Runtime, tmp_path: Path, until_done: UntilDone
) -> Kit:
    logs = tmp_path / "logs"
    return Kit(containerd_runtime, logs, containerd.cgroup_parent, containerd.busybox, until_done)


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[str]:
    """A real registry, empty; its host:port."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("needs docker-registry")
    address = f"127.0.0.1:{free_port()}"
    config = tmp_path / "registry.yml"
    config.write_text(
        "version: 0.1\n"
        f"storage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f"http: {{addr: '{address}'}}\n"
        "log: {level: error}\n"
    )
    server = await asyncio.create_subprocess_exec(
        program, "serve", str(config), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await _serving(address)
        yield address
    finally:
        server.terminate()
        await server.wait()


async def _serving(address: str) -> None:
    async with asyncio.timeout(10), aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientConnectionError):
                async with session.get(f"http://{address}/v2/"):
                    return
            await asyncio.sleep(0.02)
