"""Images: what is there, what is not, and pulling from a real registry on loopback."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.image_build import ImageConfig, build_image
from podling.cri.image_push import push_image
from podling.cri.interface import EventKind, RuntimeFault


async def test_an_absent_image_is_none(kit: Any) -> None:
    assert await kit.runtime.image_status("podling.test/absent:1") is None


async def test_a_present_image_is_listed(kit: Any) -> None:
    name = kit.busybox or "runs"
    image = await kit.runtime.image_status(name)
    assert name in image.repo_tags
    assert image.id in {listed.id for listed in await kit.runtime.list_images()}


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[str]:
    """A real registry, empty; its host:port."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("needs docker-registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
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


def _archive(directory: Path, reference: str) -> Path:
    """An image with one static program, which prints what it is."""
    files = {"bin/busybox": Path(shutil.which("busybox") or "")}
    config = ImageConfig(entrypoint=["/bin/busybox", "echo", "pulled"], user="1234")
    path = directory / "image.tar"
    path.write_bytes(build_image(reference, files, config))
    return path


@pytest.mark.containerd
async def test_an_image_built_here_is_pushed_pulled_and_runs(
    containerd_kit: Any, registry: str, tmp_path: Path
) -> None:
    reference = f"{registry}/team/neato:1"
    digest = await push_image(_archive(tmp_path, reference), reference)
    runtime = containerd_kit.runtime
    assert await runtime.image_status(reference) is None
    assert (await runtime.pull_image(reference)).startswith("sha256:")
    image = await runtime.image_status(reference)
    assert image.repo_digests == [f"{registry}/team/neato@{digest}"]
    assert image.uid.value == 1234
    container = containerd_kit.container_config("exits-0", image=pb.ImageSpec(image=reference))
    del container.command[:]
    async with containerd_kit.listening() as ears, containerd_kit.sandbox() as (sandbox_id, config):
        container_id = await runtime.create_container(sandbox_id, container, config)
        await runtime.start_container(container_id)
        assert (await ears.next(EventKind.EXITED, container_id)).exit_code == 0
        await runtime.stop_container(container_id, 10)
        assert "stdout F pulled" in (containerd_kit.log_directory / "exits-0.log").read_text()
    await runtime.remove_image(reference)
    assert await runtime.image_status(reference) is None


@pytest.mark.containerd
async def test_pushing_again_sends_no_blob_twice(registry: str, tmp_path: Path) -> None:
    reference = f"{registry}/team/neato:1"
    archive = _archive(tmp_path, reference)
    assert await push_image(archive, reference) == await push_image(archive, reference)


@pytest.mark.containerd
async def test_an_image_the_registry_does_not_have_is_not_found(containerd_kit: Any, registry: str) -> None:
    with pytest.raises(RuntimeFault) as fault:
        await containerd_kit.runtime.pull_image(f"{registry}/team/nothing:1")
    assert fault.value.code == "NOT_FOUND"


@pytest.mark.containerd
async def test_a_registry_that_is_not_there_is_named(containerd_kit: Any) -> None:
    with pytest.raises(RuntimeFault, match=r"127\.0\.0\.1:1"):
        await containerd_kit.runtime.pull_image("127.0.0.1:1/nothing:1")


async def test_an_unknown_image_is_not_found_by_the_hollow_runtime_too(kit: Any) -> None:
    if kit.busybox:
        pytest.skip("the registry decides, see above")
    with pytest.raises(RuntimeFault) as fault:
        await kit.runtime.pull_image("podling.test/nothing:1")
    assert fault.value.code == "NOT_FOUND"
