"""Files of images from containerd's own services, for a containerd whose CRI mounts no images (before 2.1).

A view is a read-only snapshot of an image's layers, the same that the root filesystem of a container is based
on. A label makes it a root of containerd's garbage collection, so it outlives its image until it is released.
"""

from __future__ import annotations

from typing import Any

import msgspec
from google.protobuf.message import Message

from podling.cri.grpc import containerd_snapshots_pb2 as pb
from podling.cri.grpc import cri_pb2 as cri
from podling.cri.grpc.connection import Answer, Connection
from podling.cri.interface import ImageMount, RuntimeFault

_SNAPSHOTS = "/containerd.services.snapshots.v1.Snapshots/"
_METADATA = (("containerd-namespace", "k8s.io"),)
_GC_ROOT = "containerd.io/gc.root"
_OURS = "podling.dev/image-volume"
_DEADLINE = 30.0
DEFAULT_SNAPSHOTTER = "overlayfs"
"""The snapshotter of a containerd that does not report which it uses (2.0)."""


class ContainerdImages:
    """Every method raises RuntimeFault. The caller chooses the names of views."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._snapshotter = ""

    async def hold(self, name: str, image: str) -> list[ImageMount]:
        """How to mount the image's files. An existing view of that name is returned again."""
        snapshotter = await self._find_snapshotter()
        request = pb.ViewSnapshotRequest(
            snapshotter=snapshotter,
            key=name,
            parent=await self._chain(image),
            labels={_GC_ROOT: "true", _OURS: "true"},
        )
        try:
            answer = await self._call("View", request, pb.MountsResponse)
        except RuntimeFault as fault:
            if fault.code != "ALREADY_EXISTS":
                raise
            known = pb.MountsRequest(snapshotter=snapshotter, key=name)
            answer = await self._call("Mounts", known, pb.MountsResponse)
        return [ImageMount(mount.type, mount.source, tuple(mount.options)) for mount in answer.mounts]

    async def let_go(self, name: str) -> None:
        """Release a view; one that does not exist is no error."""
        request = pb.RemoveSnapshotRequest(snapshotter=await self._find_snapshotter(), key=name)
        try:
            await self._call("Remove", request, pb.RemoveSnapshotResponse)
        except RuntimeFault as fault:
            if fault.code != "NOT_FOUND":
                raise

    async def held(self) -> list[str]:
        return await self._named(f'labels."{_OURS}"==true')

    async def unpacking(self) -> bool:
        """Whether a layer of an image is being unpacked, or will be once it is fetched."""
        return bool(await self._named("name~=/^extract-/"))

    async def _named(self, filter: str) -> list[str]:
        request = pb.ListSnapshotsRequest(snapshotter=await self._find_snapshotter(), filters=[filter])
        path = f"{_SNAPSHOTS}List"
        async with self._connection.stream(path, request, pb.ListSnapshotsResponse, _METADATA) as answers:
            return [info.name async for answer in answers for info in answer.info]

    async def _chain(self, image: str) -> str:
        """The name of the snapshot that has all of the image's layers."""
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=image), verbose=True)
        path = "/runtime.v1.ImageService/ImageStatus"
        answer = await self._connection.call(path, request, cri.ImageStatusResponse, _DEADLINE)
        if not answer.HasField("image"):
            raise RuntimeFault("NOT_FOUND", f'image "{image}" is not present')
        chain: str = _told(answer.info["info"])["chainID"]
        return chain

    async def _find_snapshotter(self) -> str:
        if not self._snapshotter:
            request = cri.StatusRequest(verbose=True)
            path = "/runtime.v1.RuntimeService/Status"
            answer = await self._connection.call(path, request, cri.StatusResponse, _DEADLINE)
            settings = _told(answer.info["config"]).get("containerd", {})
            self._snapshotter = settings.get("snapshotter", DEFAULT_SNAPSHOTTER)
        return self._snapshotter

    async def _call(self, method: str, request: Message, answer: type[Answer]) -> Answer:
        return await self._connection.call(f"{_SNAPSHOTS}{method}", request, answer, _DEADLINE, _METADATA)


def _told(text: str) -> dict[str, Any]:
    """What verbose answers say is JSON of containerd's own."""
    return msgspec.json.decode(text.encode(), type=dict[str, Any])
