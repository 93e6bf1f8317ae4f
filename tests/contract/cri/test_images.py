"""Images: what is there, what is not, and pulling from a real registry on loopback."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.images.build import ImageConfig, build_image
from podling.cri.images.push import push_image
from podling.cri.interface import EventKind, RuntimeFault

if TYPE_CHECKING:
    from contract.cri.conftest import Kit


async def test_an_absent_image_is_none(kit: Kit) -> None:
    assert await kit.runtime.image_status("podling.test/absent:1") is None


async def test_a_present_image_is_listed(kit: Kit) -> None:
    name = kit.busybox or "runs"
    image = await kit.runtime.image_status(name)
    assert image
    assert name in image.repo_tags
    assert image.id in {listed.id for listed in await kit.runtime.list_images()}


async def test_a_runtime_says_where_its_images_are(kit: Kit) -> None:
    told = await kit.runtime.image_fs_info()
    assert Path(told.image_filesystems[0].fs_id.mountpoint).is_absolute()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An image with one static program, which prints what it is."""
    files = {"bin/busybox": Path(shutil.which("busybox") or "")}
    config = ImageConfig(entrypoint=["/bin/busybox", "echo", "pulled"], user="1234")
    path = tmp_path / "image.tar"
    path.write_bytes(build_image("podling.test/neato:1", files, config))
    return path


@pytest.mark.containerd
async def test_an_image_built_here_is_pushed_pulled_and_runs(
    containerd_kit: Kit, registry: str, archive: Path
) -> None:
    reference = f"{registry}/team/neato:1"
    digest = await push_image(archive, reference)
    runtime = containerd_kit.runtime
    assert await runtime.image_status(reference) is None
    assert (await runtime.pull_image(reference)).startswith("sha256:")
    image = await runtime.image_status(reference)
    assert image
    assert image.repo_digests == [f"{registry}/team/neato@{digest}"]
    assert image.uid.value == 1234
    container = containerd_kit.container_config("exits-0", image=pb.ImageSpec(image=reference))
    del container.command[:]
    async with containerd_kit.listening() as ears, containerd_kit.sandbox() as (sandbox_id, config):
        container_id = await runtime.create_container(sandbox_id, container, config)
        await runtime.start_container(container_id)
        assert (await ears.next(EventKind.EXITED, container_id)).exit_code == 0
        await containerd_kit.ended(container_id)
        assert "stdout F pulled" in (containerd_kit.log_directory / "exits-0.log").read_text()
    await runtime.remove_image(reference)
    assert await runtime.image_status(reference) is None


@pytest.mark.containerd
async def test_pushing_again_sends_no_blob_twice(registry: str, archive: Path) -> None:
    reference = f"{registry}/team/neato:1"
    assert await push_image(archive, reference) == await push_image(archive, reference)


@pytest.mark.containerd
async def test_an_image_the_registry_does_not_have_is_not_found(containerd_kit: Kit, registry: str) -> None:
    with pytest.raises(RuntimeFault) as fault:
        await containerd_kit.runtime.pull_image(f"{registry}/team/nothing:1")
    assert fault.value.code == "NOT_FOUND"


@pytest.mark.containerd
async def test_a_registry_that_is_not_there_is_named(containerd_kit: Kit) -> None:
    with pytest.raises(RuntimeFault, match=r"127\.0\.0\.1:1"):
        await containerd_kit.runtime.pull_image("127.0.0.1:1/nothing:1")


async def test_an_unknown_image_is_not_found_by_the_hollow_runtime_too(hollow_kit: Kit) -> None:
    with pytest.raises(RuntimeFault) as fault:
        await hollow_kit.runtime.pull_image("podling.test/nothing:1")
    assert fault.value.code == "NOT_FOUND"
