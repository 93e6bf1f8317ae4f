"""A private containerd over its life: started, adopted, killed, started again, and gone without a trace."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from podling.cri.containerd.config import ContainerdSettings
from podling.cri.containerd.containerd import Containerd, ContainerdError, remove_leftovers, running
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.archive import ImageArchiveError, load_images
from podling.cri.images.push import push_image
from podling.cri.interface import EventKind
from podling.kubelet.worker.observe import observe_until_answered
from podling.process.mounts import mounts_under
from podling.process.programs import command_line, processes

pytestmark = pytest.mark.containerd
PATIENCE = 120
"""Seconds for what never comes if it is broken, and soon if not: a busy machine is no fault."""


@pytest.fixture
async def settings(tmp_path: Path, image_archives: dict[str, Path]) -> AsyncIterator[ContainerdSettings]:
    settings = ContainerdSettings(
        root=tmp_path / "root",
        state=Path(f"/run/podling-test-{os.getpid()}-own"),
        log=tmp_path / "log",
        sandbox_image=next(iter(image_archives)),
        cni_conf_dir=tmp_path / "cni",
    )
    yield settings
    await Containerd(settings).stop()
    await remove_leftovers(settings)


def _pid(settings: ContainerdSettings) -> int:
    process = running(settings)
    assert process is not None
    return process.pid


def _host_network_sandbox() -> pb.PodSandboxConfig:
    options = pb.NamespaceOption(network=pb.NODE, pid=pb.CONTAINER)
    security = pb.LinuxSandboxSecurityContext(namespace_options=options)
    metadata = pb.PodSandboxMetadata(name="pod", uid="uid", namespace="default")
    return pb.PodSandboxConfig(metadata=metadata, linux=pb.LinuxPodSandboxConfig(security_context=security))


async def test_the_next_podling_adopts_it(settings: ContainerdSettings) -> None:
    await Containerd(settings).start()
    first = _pid(settings)
    await Containerd(settings).start()
    assert _pid(settings) == first


async def test_another_configuration_replaces_it(settings: ContainerdSettings) -> None:
    await Containerd(settings).start()
    first = _pid(settings)
    await Containerd(replace(settings, sandbox_image="podling.test/other:1")).start()
    assert _pid(settings) != first


async def test_another_mirror_does_not(settings: ContainerdSettings) -> None:
    await Containerd(settings).start()
    first = _pid(settings)
    mirrors = {"docker.io": ["http://127.0.0.1:5000"]}
    await Containerd(replace(settings, registries=mirrors)).start()
    assert _pid(settings) == first
    assert (settings.registry_dir / "docker.io" / "hosts.toml").exists()


async def test_stopped_it_is_gone(settings: ContainerdSettings) -> None:
    server = Containerd(settings)
    await server.start()
    async with asyncio.TaskGroup() as group:
        group.create_task(server.supervise(lambda words: pytest.fail(words)))
        await server.stop()
    assert running(settings) is None


async def test_killed_it_is_started_again_and_containers_live_on(
    settings: ContainerdSettings, image_archives: dict[str, Path]
) -> None:
    """R-INIT-11: what ran before is still there, and whoever listens is told to look again."""
    server = Containerd(settings)
    await server.start()
    await load_images(settings.socket, next(iter(image_archives.values())))
    runtime = GrpcRuntime(str(settings.socket))
    sandbox_id = await runtime.run_pod_sandbox(_host_network_sandbox())
    events = runtime.events()
    died = asyncio.Event()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(server.supervise(lambda _: died.set()))
        assert (await anext(events)).kind is EventKind.RELIST
        os.kill(_pid(settings), signal.SIGKILL)
        await died.wait()
        assert (await anext(events)).kind is EventKind.RELIST
        # As the kubelet does: one that has just come back may answer nothing but events for a while.
        await observe_until_answered(runtime)
        assert (await runtime.pod_sandbox_status(sandbox_id)).state == pb.SANDBOX_READY
        await server.stop()
    await runtime.close()


async def test_what_a_killed_one_left_is_removed(
    settings: ContainerdSettings, image_archives: dict[str, Path]
) -> None:
    await Containerd(settings).start()
    await load_images(settings.socket, next(iter(image_archives.values())))
    runtime = GrpcRuntime(str(settings.socket))
    await runtime.run_pod_sandbox(_host_network_sandbox())
    await runtime.close()
    assert mounts_under(settings.state)
    await Containerd(settings).stop()
    await remove_leftovers(settings)
    assert not mounts_under(settings.state)
    assert not settings.state.exists()
    assert not [pid for pid in processes() if str(settings.socket) in command_line(pid)]


async def test_without_the_program_it_says_what_to_install(settings: ContainerdSettings) -> None:
    with pytest.raises(ContainerdError, match="install the package containerd"):
        await Containerd(replace(settings, binary="no-such-containerd")).start()


async def test_when_it_dies_at_the_start_its_last_words_are_said(settings: ContainerdSettings) -> None:
    settings.socket.mkdir(parents=True)
    with pytest.raises(ContainerdError, match=r"(?s)did not start: .*is a directory"):
        await Containerd(settings).start()


async def test_an_archive_that_is_none_is_refused(settings: ContainerdSettings, tmp_path: Path) -> None:
    await Containerd(settings).start()
    broken = tmp_path / "broken.tar"
    broken.write_bytes(b"")
    with pytest.raises(ImageArchiveError):
        await load_images(settings.socket, broken)


async def test_one_that_serves_no_cri_is_not_left_running(settings: ContainerdSettings) -> None:
    """Two containerds on one root: the second cannot have the metadata, says so and goes."""
    await Containerd(settings).start()
    first = _pid(settings)
    settings.pid_file.unlink()
    with pytest.raises(ContainerdError, match="serves no CRI"):
        await Containerd(settings).start()
    assert [pid for pid in processes() if str(settings.config_file) in command_line(pid)] == [first]
    settings.pid_file.write_text(f"{first}\n")


async def test_a_mirror_is_asked_in_place_of_the_registry(
    settings: ContainerdSettings, registry: str, image_archives: dict[str, Path]
) -> None:
    await push_image(next(iter(image_archives.values())), f"{registry}/library/thing:1")
    mirrors = {"docker.io": [f"http://{registry}"], "registry.test": [f"http://{registry}"]}
    await Containerd(replace(settings, registries=mirrors)).start()
    runtime = GrpcRuntime(str(settings.socket))
    for name in ("docker.io/library/thing:1", "registry.test/library/thing:1"):
        assert await runtime.pull_image(name)
        assert await runtime.image_status(name) is not None
    await runtime.close()
