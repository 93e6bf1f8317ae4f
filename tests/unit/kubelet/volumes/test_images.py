"""Images mounted by the kubelet itself are mounted once, sealed, and let go with their pod; R-VOL-2."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.interface import ImageMount
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.volumes.pod_volumes import ImageVolumes, image_volumes, release_leftovers
from podling.model.types.container import Container, VolumeMount
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.volume import ImageVolumeSource, Volume
from podling.process.mounts import mounts_under, unmount_under

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
IMAGE = "sha256:0123456789abcdef"


class Holder(HollowRuntime):
    """A runtime that mounts no images: it has the layers of one in directories."""

    def __init__(self, layers: Path, count: int) -> None:
        super().__init__({})
        self._layers = [layers / str(number) for number in range(count)]
        for layer in self._layers:
            layer.mkdir(parents=True)
            (layer / layer.name).write_text("#!/bin/sh\n")
            (layer / layer.name).chmod(0o755)
        self.held: list[str] = []

    async def hold_image(self, name: str, image: str) -> list[ImageMount]:
        self.held.append(name)
        if len(self._layers) == 1:
            return [ImageMount("bind", str(self._layers[0]), ("ro", "rbind"))]
        lower = ":".join(map(str, self._layers))
        return [ImageMount("overlay", "overlay", (f"lowerdir={lower}", "ro"))]

    async def let_image_go(self, name: str) -> None:
        self.held.remove(name)

    async def held_images(self) -> list[str]:
        return list(self.held)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[PodDirectory]:
    yield PodDirectory(tmp_path / "pods", tmp_path / "logs", "ns", "web", "uid")
    unmount_under(tmp_path)


@needs_root
@pytest.mark.parametrize("layers", [1, 3])
async def test_files_of_all_layers_are_there_and_can_be_read_only(
    directory: PodDirectory, tmp_path: Path, layers: int
) -> None:
    runtime = Holder(tmp_path / "layers", layers)
    volumes = ImageVolumes(directory, runtime)
    place, again = await asyncio.gather(volumes.mount("v", IMAGE), volumes.mount("v", IMAGE))
    assert place == again == directory.volume("image", "v") / "0123456789ab"
    assert sorted(os.listdir(place)) == [str(number) for number in range(layers)]
    assert runtime.held == ["podling/uid/v/0123456789ab"]
    with pytest.raises(OSError, match="Read-only"):
        (place / "new").touch()
    with pytest.raises(PermissionError):
        await asyncio.create_subprocess_exec(place / "0")


@needs_root
async def test_all_that_was_mounted_is_let_go_also_by_a_kubelet_that_did_not_mount_it(
    directory: PodDirectory, tmp_path: Path
) -> None:
    runtime = Holder(tmp_path / "layers", 1)
    for volume in ("v", "w"):
        await ImageVolumes(directory, runtime).mount(volume, IMAGE)
    await ImageVolumes(directory, runtime).release()
    assert not runtime.held and not mounts_under(directory.path)


async def test_what_pods_that_are_no_more_have_held_is_let_go(tmp_path: Path) -> None:
    runtime = Holder(tmp_path, 1)
    runtime.held = ["podling/known/v/1", "podling/gone/v/1"]
    await release_leftovers(runtime, {"known"})
    assert runtime.held == ["podling/known/v/1"]


def test_a_container_waits_for_the_images_it_mounts_alone() -> None:
    volumes = [Volume(name=name, image=ImageVolumeSource(reference=name)) for name in ("a", "b")]
    pod = Pod(spec=PodSpec(volumes=[*volumes, Volume(name="c")]))
    mounts = [VolumeMount(name=name) for name in ("b", "c", "b")]
    assert [name for name, _ in image_volumes(pod, Container(volume_mounts=mounts))] == ["b"]
