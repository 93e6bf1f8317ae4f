"""The node service of one CSI driver, reached at its socket. Each method is one call (`csi.v1.Node`).

Calls have a deadline of two minutes, as in Kubernetes' kubelet. None is repeated here: all are idempotent by
CSI's rules, and who asked asks again. What a driver can do is asked once: one that was exchanged registers
anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.message import Message

from podling.cri.grpc.connection import Answer, Connection
from podling.cri.interface import RuntimeFault
from podling.kubelet.csi import csi_pb2 as pb
from podling.kubelet.csi.interface import Access, DriverError, Staged
from podling.kubelet.host.disk import VolumeUse

_DEADLINE = 120.0
_RPC = pb.NodeServiceCapability.RPC
_UNIT = pb.VolumeUsage


class Driver:
    """A registered driver. `endpoint` is its socket's path. Methods raise DriverError."""

    def __init__(self, name: str, endpoint: str) -> None:
        self.name = name
        self._connection = Connection(endpoint)
        self._capabilities: frozenset[int] | None = None

    async def close(self) -> None:
        await self._connection.close()

    async def info(self) -> pb.NodeGetInfoResponse:
        return await self._ask("NodeGetInfo", pb.NodeGetInfoRequest(), pb.NodeGetInfoResponse)

    async def stages(self) -> bool:
        """Whether a volume is staged once for the node before pods get it."""
        return await self._can(_RPC.STAGE_UNSTAGE_VOLUME)

    async def expands(self) -> bool:
        return await self._can(_RPC.EXPAND_VOLUME)

    async def tells_pods_apart(self) -> bool:
        """Whether it knows the access modes for one pod and for several of a node."""
        return await self._can(_RPC.SINGLE_NODE_MULTI_WRITER)

    async def mounts_with_group(self) -> bool:
        """Whether it gives files to the fsGroup by itself."""
        return await self._can(_RPC.VOLUME_MOUNT_GROUP)

    async def stage(self, one: Staged, secrets: Mapping[str, str], context: Mapping[str, str]) -> None:
        request = pb.NodeStageVolumeRequest(
            volume_id=one.volume,
            publish_context=one.attached,
            staging_target_path=one.staging,
            volume_capability=_capability(one.access),
            secrets=secrets,
            volume_context=context,
        )
        await self._ask("NodeStageVolume", request, pb.NodeStageVolumeResponse)

    async def unstage(self, volume: str, staging: str) -> None:
        request = pb.NodeUnstageVolumeRequest(volume_id=volume, staging_target_path=staging)
        await self._ask("NodeUnstageVolume", request, pb.NodeUnstageVolumeResponse)

    async def publish(
        self,
        one: Staged,
        target: str,
        secrets: Mapping[str, str],
        context: Mapping[str, str],
        *,
        read_only: bool,
    ) -> None:
        request = pb.NodePublishVolumeRequest(
            volume_id=one.volume,
            publish_context=one.attached,
            staging_target_path=one.staging,
            target_path=target,
            volume_capability=_capability(one.access),
            readonly=read_only,
            secrets=secrets,
            volume_context=context,
        )
        await self._ask("NodePublishVolume", request, pb.NodePublishVolumeResponse)

    async def unpublish(self, volume: str, target: str) -> None:
        request = pb.NodeUnpublishVolumeRequest(volume_id=volume, target_path=target)
        await self._ask("NodeUnpublishVolume", request, pb.NodeUnpublishVolumeResponse)

    async def expand(self, one: Staged, path: str, size: int, secrets: Mapping[str, str]) -> None:
        """`path` is where it is in a pod, `size` is in bytes."""
        request = pb.NodeExpandVolumeRequest(
            volume_id=one.volume,
            volume_path=path,
            capacity_range=pb.CapacityRange(required_bytes=size),
            staging_target_path=one.staging,
            volume_capability=_capability(one.access),
            secrets=secrets,
        )
        await self._ask("NodeExpandVolume", request, pb.NodeExpandVolumeResponse)

    async def use(self, volume: str, path: str) -> VolumeUse | None:
        """`path` is where it is in a pod. None if the driver does not tell."""
        if not await self._can(_RPC.GET_VOLUME_STATS):
            return None
        request = pb.NodeGetVolumeStatsRequest(volume_id=volume, volume_path=path)
        told = await self._ask("NodeGetVolumeStats", request, pb.NodeGetVolumeStatsResponse)
        by_unit = {one.unit: one for one in told.usage}
        none = pb.VolumeUsage()
        size, inodes = by_unit.get(_UNIT.BYTES, none), by_unit.get(_UNIT.INODES, none)
        tells = await self._can(_RPC.VOLUME_CONDITION)
        return VolumeUse(
            capacity=size.total,
            available=size.available,
            used=size.used,
            inodes=inodes.total,
            inodes_free=inodes.available,
            inodes_used=inodes.used,
            abnormal=told.volume_condition.abnormal if tells else None,
        )

    async def _can(self, capability: int) -> bool:
        if self._capabilities is None:
            request = pb.NodeGetCapabilitiesRequest()
            told = await self._ask("NodeGetCapabilities", request, pb.NodeGetCapabilitiesResponse)
            self._capabilities = frozenset(one.rpc.type for one in told.capabilities)
        return capability in self._capabilities

    async def _ask(self, method: str, request: Message, answer: type[Answer]) -> Answer:
        try:
            return await self._connection.call(f"/csi.v1.Node/{method}", request, answer, _DEADLINE)
        except RuntimeFault as fault:
            code = fault.code.title().replace("_", "")
            raise DriverError(f"rpc error: code = {code} desc = {fault.message}") from fault


def _capability(access: Access) -> pb.VolumeCapability:
    kinds = pb.VolumeCapability
    mode = kinds.AccessMode(mode=access.mode)
    if access.block:
        return kinds(block=kinds.BlockVolume(), access_mode=mode)
    mount = kinds.MountVolume(
        fs_type=access.fs_type, mount_flags=access.mount_flags, volume_mount_group=access.group
    )
    return kinds(mount=mount, access_mode=mode)
