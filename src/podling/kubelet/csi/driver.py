"""The node service of one CSI driver, reached at its socket. Each method is one call (`csi.v1.Node`).

Calls have a deadline of two minutes, as in Kubernetes' kubelet. None is repeated here: all are idempotent by
CSI's rules, and who asked asks again.
"""

from __future__ import annotations

from google.protobuf.message import Message

from podling.cri.grpc.connection import Answer, Connection
from podling.cri.interface import RuntimeFault
from podling.kubelet.csi import csi_pb2 as pb

_DEADLINE = 120.0
Capability = pb.NodeServiceCapability.RPC


class CsiError(Exception):
    """A driver refused or did not answer. The message is gRPC's as Go writes it."""

    def __init__(self, fault: RuntimeFault) -> None:
        code = fault.code.title().replace("_", "")
        super().__init__(f"rpc error: code = {code} desc = {fault.message}")


class Driver:
    """A registered driver. `endpoint` is its socket's path. Methods raise CsiError."""

    def __init__(self, name: str, endpoint: str) -> None:
        self.name = name
        self._connection = Connection(endpoint)
        self._capabilities: frozenset[int] | None = None

    async def close(self) -> None:
        await self._connection.close()

    async def info(self) -> pb.NodeGetInfoResponse:
        return await self._ask("NodeGetInfo", pb.NodeGetInfoRequest(), pb.NodeGetInfoResponse)

    async def can(self, capability: Capability.Type) -> bool:
        """Asked once a registration: a driver that was exchanged registers anew."""
        if self._capabilities is None:
            request = pb.NodeGetCapabilitiesRequest()
            told = await self._ask("NodeGetCapabilities", request, pb.NodeGetCapabilitiesResponse)
            self._capabilities = frozenset(one.rpc.type for one in told.capabilities)
        return capability in self._capabilities

    async def stage(self, request: pb.NodeStageVolumeRequest) -> None:
        await self._ask("NodeStageVolume", request, pb.NodeStageVolumeResponse)

    async def unstage(self, volume: str, staging: str) -> None:
        request = pb.NodeUnstageVolumeRequest(volume_id=volume, staging_target_path=staging)
        await self._ask("NodeUnstageVolume", request, pb.NodeUnstageVolumeResponse)

    async def publish(self, request: pb.NodePublishVolumeRequest) -> None:
        await self._ask("NodePublishVolume", request, pb.NodePublishVolumeResponse)

    async def unpublish(self, volume: str, target: str) -> None:
        request = pb.NodeUnpublishVolumeRequest(volume_id=volume, target_path=target)
        await self._ask("NodeUnpublishVolume", request, pb.NodeUnpublishVolumeResponse)

    async def expand(self, request: pb.NodeExpandVolumeRequest) -> None:
        await self._ask("NodeExpandVolume", request, pb.NodeExpandVolumeResponse)

    async def _ask(self, method: str, request: Message, answer: type[Answer]) -> Answer:
        try:
            return await self._connection.call(f"/csi.v1.Node/{method}", request, answer, _DEADLINE)
        except RuntimeFault as fault:
            raise CsiError(fault) from fault
