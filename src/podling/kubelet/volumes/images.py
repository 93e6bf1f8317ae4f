"""`image` volumes (R-VOL-2): the files of an image, read-only.

A runtime that can mount images gets the image in the container's mount. For any other runtime the kubelet
mounts the files below the pod's directory, one place for each image that a volume has had. The runtime holds
the image under a name with the pod's uid, so that what a killed kubelet leaves is found.

    <pod>/volumes/kubernetes.io~image/<volume>/<image>    held as podling/<uid>/<volume>/<image>
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path

from podling.cri.interface import Runtime
from podling.kubelet.host.mounts import mount_image, unmount_under
from podling.kubelet.pod.directories import PodDirectory
from podling.model.types.container import Container, EphemeralContainerCommon
from podling.model.types.pod import Pod
from podling.model.types.volume import ImageVolumeSource

IMAGE_PLUGIN = "image"
_PREFIX = "podling"


def image_volumes(pod: Pod, container: EphemeralContainerCommon) -> Iterator[tuple[str, ImageVolumeSource]]:
    """Name and source of the pod's image volumes that the container mounts."""
    mounted = {mount.name for mount in container.volume_mounts}
    return (
        (volume.name, volume.image)
        for volume in pod.spec.volumes
        if volume.image is not None and volume.name in mounted
    )


def as_container(source: ImageVolumeSource) -> Container:
    """A container with this image and pull policy, as pulling takes containers."""
    return Container(image=source.reference, image_pull_policy=source.pull_policy)


class ImageVolumes:
    """The image volumes of one pod that the kubelet mounts. Methods raise RuntimeFault and OSError."""

    def __init__(self, directory: PodDirectory, runtime: Runtime) -> None:
        self._directory = directory
        self._runtime = runtime
        self._mounting = asyncio.Lock()

    async def mount(self, volume: str, image: str) -> Path:
        place = self._directory.volume(IMAGE_PLUGIN, volume) / image.rpartition(":")[2][:12]
        async with self._mounting:
            if not place.is_mount():
                mounts = await self._runtime.hold_image(self._name(place), image)
                place.mkdir(parents=True, exist_ok=True)
                for mount in mounts:
                    mount_image(mount.type, mount.source, mount.options, place)
        return place

    async def release(self) -> None:
        """Unmount all, and release their images in the runtime."""
        places = list(self._directory.volume(IMAGE_PLUGIN, "").glob("*/*"))
        for place in places:
            await asyncio.to_thread(unmount_under, place)
            await self._runtime.let_image_go(self._name(place))

    def _name(self, place: Path) -> str:
        return f"{_PREFIX}/{self._directory.path.name}/{place.parent.name}/{place.name}"


async def release_leftovers(runtime: Runtime, known: Collection[str]) -> None:
    """Release the images held for pods that are not `known` (uids). Raises RuntimeFault."""
    for name in await runtime.held_images():
        if name.split("/")[1] not in known:
            await runtime.let_image_go(name)
