"""How far the pulls of a containerd have come, from its content and snapshots services: CRI is silent about a
pull until it is over.
"""

from __future__ import annotations

from podling.cri.grpc import containerd_content_pb2 as pb
from podling.cri.grpc.connection import Connection
from podling.cri.grpc.containerd_images import ContainerdImages
from podling.cri.interface import PullProgress, RuntimeFault

_LIST = "/containerd.services.content.v1.Content/ListStatuses"
_METADATA = (("containerd-namespace", "k8s.io"),)
_DEADLINE = 30.0


class ContainerdPulls:
    def __init__(self, connection: Connection, images: ContainerdImages) -> None:
        self._connection = connection
        self._images = images

    async def progress(self) -> PullProgress | None:
        """None while all is there and layers are unpacked, which shows nowhere, and from a runtime that is
        not containerd. Raises RuntimeFault."""
        try:
            answer = await self._connection.call(
                _LIST, pb.ListStatusesRequest(), pb.ListStatusesResponse, _DEADLINE, _METADATA
            )
            fetched = frozenset((status.ref, status.offset) for status in answer.statuses)
            # The place to unpack a layer to is made before the layer is fetched.
            return fetched or (None if await self._images.unpacking() else fetched)
        except RuntimeFault as fault:
            if fault.code == "UNIMPLEMENTED":
                return None
            raise
