"""What only a runtime with real processes can show, and what podling relies on of containerd besides CRI."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.interface import EventKind, RuntimeFault

if TYPE_CHECKING:
    from conftest import RealContainerd
    from contract.cri.conftest import Kit

pytestmark = pytest.mark.containerd


async def test_a_container_may_join_the_processes_of_another(containerd_kit: Kit) -> None:
    """R-EPH-4: an ephemeral container with a target sees the target as process 1, and its files."""
    runtime = containerd_kit.runtime
    async with containerd_kit.sandbox() as (sandbox_id, config):
        target = await runtime.create_container(
            sandbox_id, containerd_kit.container_config("ignores-term"), config
        )
        await runtime.start_container(target)
        debugger = containerd_kit.container_config("runs")
        options = debugger.linux.security_context.namespace_options
        options.pid, options.target_id = pb.TARGET, target
        debugger_id = await runtime.create_container(sandbox_id, debugger, config)
        await runtime.start_container(debugger_id)
        answer = await runtime.exec_sync(debugger_id, ["cat", "/proc/1/cmdline"], 10)
        assert answer.stdout.split(b"\0")[:2] == [b"sleep", b"1000"]
        files = await runtime.exec_sync(debugger_id, ["ls", "/proc/1/root/bin/busybox"], 10)
        assert files.exit_code == 0


async def test_a_memory_kill_is_told_and_seen(containerd_kit: Kit) -> None:
    """R-EPH-12: over its limit a container is killed, and its status says why."""
    runtime = containerd_kit.runtime
    config = containerd_kit.container_config("runs", command=[])
    del config.command[:]
    config.command.extend(["tail", "/dev/zero"])
    limit = 16 * 1024 * 1024
    config.linux.resources.CopyFrom(
        pb.LinuxContainerResources(memory_limit_in_bytes=limit, memory_swap_limit_in_bytes=limit)
    )
    async with containerd_kit.listening() as ears, containerd_kit.sandbox() as (sandbox_id, sandbox):
        container_id = await runtime.create_container(sandbox_id, config, sandbox)
        await runtime.start_container(container_id)
        await ears.next(EventKind.OOM, container_id)
        assert (await ears.next(EventKind.EXITED, container_id)).exit_code == 137
        await containerd_kit.until_done(lambda: runtime.stop_container(container_id, 10))
        assert (await runtime.container_status(container_id)).reason == "OOMKilled"


async def test_a_program_that_is_not_there_is_refused_at_the_start(containerd_kit: Kit) -> None:
    runtime = containerd_kit.runtime
    async with containerd_kit.sandbox() as (sandbox_id, config):
        container = containerd_kit.container_config("missing-program")
        container_id = await runtime.create_container(sandbox_id, container, config)
        with pytest.raises(RuntimeFault, match="no such file or directory"):
            await runtime.start_container(container_id)
        status = await runtime.container_status(container_id)
        assert (status.state, status.exit_code, status.reason) == (pb.CONTAINER_EXITED, 128, "StartError")


async def test_streams_are_served_on_loopback(containerd_kit: Kit) -> None:
    async with containerd_kit.started("runs") as container_id:
        request = pb.ExecRequest(container_id=container_id, cmd=["true"], stdout=True)
        assert (await containerd_kit.runtime.exec(request)).startswith("http://127.0.0.1:")
        attach = pb.AttachRequest(container_id=container_id, stdout=True)
        assert (await containerd_kit.runtime.attach(attach)).startswith("http://127.0.0.1:")


async def test_an_exit_is_told_long_before_the_runtime_admits_it(containerd_kit: Kit) -> None:
    """The planner may act on the event alone; that it then removes or replaces a container CRI calls running
    is in order. Ten exits, each heard within 20 ms of its own time stamp at the best."""
    delays = []
    async with containerd_kit.listening() as ears, containerd_kit.sandbox() as (sandbox_id, config):
        for _ in range(10):
            container = containerd_kit.container_config("exits-0")
            container_id = await containerd_kit.runtime.create_container(sandbox_id, container, config)
            await containerd_kit.runtime.start_container(container_id)
            event = await ears.next(EventKind.EXITED, container_id)
            delays.append(time.time() - event.finished_at / 1e9)
            await containerd_kit.until_done(partial(containerd_kit.runtime.remove_container, container_id))
    assert min(delays) < 0.02


def test_it_works_on_uvloop(containerd: RealContainerd) -> None:
    """One loop serves HTTP and speaks gRPC: both must live on uvloop."""

    async def conversation() -> pb.VersionResponse:
        runtime = GrpcRuntime(containerd.socket)
        events = runtime.events()
        async with asyncio.timeout(20):
            assert (await anext(events)).kind is EventKind.RELIST
        version = await runtime.version()
        await runtime.close()
        return version

    assert uvloop.run(conversation()).runtime_name == "containerd"


async def test_a_containerd_before_2_says_nothing_of_its_handlers(containerd_kit: Kit) -> None:
    """So that no pod is promised users of its own there, and none runs as the node's instead."""
    runtime = containerd_kit.runtime
    version, found = await runtime.version(), await runtime.features()
    says = int(version.runtime_version.lstrip("v").partition(".")[0]) >= 2
    assert bool(found.handlers) == says
    assert found.user_namespaces <= found.handlers


async def test_an_image_is_held_under_a_name_until_it_is_let_go(containerd_kit: Kit) -> None:
    """R-VOL-2: what a runtime that mounts no images is asked for instead."""
    runtime = containerd_kit.runtime
    if (await runtime.features()).mounts_images:
        pytest.skip("containerd mounts images itself from 2.1 on")
    found = await runtime.image_status(containerd_kit.container_config("runs").image.image)
    assert found
    image = found.id
    held = await runtime.hold_image("podling/u/v/1", image)
    assert held == await runtime.hold_image("podling/u/v/1", image)
    assert [mount.type for mount in held] == ["bind"] and "ro" in held[0].options
    assert (Path(held[0].source) / "bin/busybox").exists()
    assert await runtime.held_images() == ["podling/u/v/1"]
    await runtime.let_image_go("podling/u/v/1")
    await runtime.let_image_go("podling/u/v/1")
    assert await runtime.held_images() == []
    with pytest.raises(RuntimeFault) as fault:
        await runtime.hold_image("podling/u/v/2", "podling.test/none:1")
    assert fault.value.code == "NOT_FOUND"
