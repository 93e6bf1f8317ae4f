"""The steps of a CSI volume on its way into a pod, each a call of its driver: staged, published, grown. The
messages are those of Kubernetes' kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.kubelet.csi.interface import Access, DriverError, Staged
from podling.kubelet.csi.registration import CsiDrivers
from podling.kubelet.volumes.claimed import has_group
from podling.kubelet.volumes.csi import PERSISTENT, CsiVolume, SecretName, publish_context, takes_group
from podling.kubelet.volumes.csi_records import CsiPlaces
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import set_group
from podling.model.quantity import Quantity
from podling.model.rules.volume_binding import STORAGE
from podling.model.types.core import Secret
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriverSpec

if TYPE_CHECKING:
    from podling.kubelet.csi.driver import Driver

ON_ROOT_MISMATCH = "OnRootMismatch"
_RESIZING = ("Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError")
"""The conditions of a claim that is being grown."""


class CsiMountError(VolumeError):
    """A step failed for one volume."""

    def __init__(self, step: str, volume: CsiVolume, why: object) -> None:
        kind = "MapVolume" if volume.block else "MountVolume"
        super().__init__(f'{kind}.{step} failed for volume "{volume.name}" : {why}')
        self.event = "FailedMapVolume" if volume.block else "FailedMount"


class CsiParts(msgspec.Struct, frozen=True):
    """The parts of the node that the steps use."""

    client: Client
    drivers: CsiDrivers
    events: EventRecorder
    node_name: str


class CsiSteps:
    """The steps of one volume that a pod gets. They raise VolumeError, StatusError and OSError."""

    def __init__(
        self,
        parts: CsiParts,
        pod: Pod,
        volume: CsiVolume,
        places: CsiPlaces,
        spec: CSIDriverSpec | None,
        attached: Mapping[str, str],
    ) -> None:
        self._parts, self._pod, self._volume = parts, pod, volume
        self._places, self._spec = places, spec
        self.attached = attached

    def _driver(self, step: str) -> Driver:
        found = self._parts.drivers.get(self._volume.driver)
        if found is None:
            raise CsiMountError(step, self._volume, unknown(self._volume.driver))
        return found

    @property
    def _group(self) -> int | None:
        context = self._pod.spec.security_context
        return context.fs_group if context else None

    async def _staged(self, driver: Driver) -> Staged:
        volume = self._volume
        with_group = self._group is not None and not volume.block and await driver.mounts_with_group()
        access = Access(
            volume.access_mode(of_pods=await driver.tells_pods_apart()),
            volume.block,
            volume.fs_type,
            volume.mount_options,
            str(self._group) if with_group else "",
        )
        stages = volume.lifecycle == PERSISTENT and await driver.stages()
        staging = str(self._places.staging) if stages else ""
        return Staged(volume.handle, staging, access, self.attached)

    async def stage(self) -> None:
        volume = self._volume
        step = "SetUpDevice" if volume.block else "MountDevice"
        if volume.lifecycle != PERSISTENT:
            return
        driver = self._driver(step)
        # Also of a driver that does not stage: who has the volume is recorded there.
        await asyncio.to_thread(self._places.record_stage)
        secrets = await self._secrets(volume.stage_secret)
        try:
            staged = await self._staged(driver)
            if staged.staging:
                await driver.stage(staged, secrets, volume.attributes)
        except DriverError as error:
            raise CsiMountError(step, volume, error) from error

    async def publish(self, tokens: str) -> None:
        volume, places = self._volume, self._places
        step = "MapPodDevice" if volume.block else "SetUp"
        driver = self._driver(step)
        context, more = publish_context(volume, self._spec, self._pod, tokens)
        secrets = {**await self._secrets(volume.publish_secret), **more}
        try:
            staged = await self._staged(driver)
            await driver.publish(staged, str(places.target), secrets, context, read_only=volume.read_only)
        except DriverError as error:
            raise CsiMountError(step, volume, error) from error
        group = self._group
        if group is not None and not staged.access.group and takes_group(volume, self._spec):
            context_of_pod = self._pod.spec.security_context
            sparing = context_of_pod is not None and context_of_pod.fs_group_change_policy == ON_ROOT_MISMATCH
            try:
                await asyncio.to_thread(_give_to_group, places.target, group, sparing)
            except OSError as error:
                raise CsiMountError(
                    step, volume, f"applyFSGroup failed for vol {volume.handle}: {error}"
                ) from error

    async def grow(self) -> None:
        volume = self._volume
        if volume.claim is None or volume.size is None:
            return
        client, ref = self._parts.client, volume.claim
        claim = await client.get(PersistentVolumeClaim, ref.name, ref.namespace)
        if claim.status.capacity.get(STORAGE, volume.size) >= volume.size:
            return
        driver = self._driver("NodeExpandVolume")
        try:
            if not await driver.expands():
                return
            secrets = await self._secrets(volume.expand_secret)
            staged = await self._staged(driver)
            await driver.expand(staged, str(self._places.target), volume.size.value(), secrets)
        except DriverError as error:
            raise CsiMountError("NodeExpandVolume", volume, error) from error
        await self._say_grown(claim, volume.size)

    async def _secrets(self, name: SecretName | None) -> dict[str, str]:
        if name is None:
            return {}
        found = await self._parts.client.get(Secret, name.name, name.namespace)
        return {key: value.decode(errors="surrogateescape") for key, value in found.data.items()}

    async def _say_grown(self, claim: PersistentVolumeClaim, size: Quantity) -> None:
        status = claim.status
        done = replace(
            status,
            capacity={**status.capacity, STORAGE: size},
            conditions=[one for one in status.conditions if one.type not in _RESIZING],
            allocated_resource_statuses={
                key: value for key, value in status.allocated_resource_statuses.items() if key != STORAGE
            },
        )
        await self._parts.client.update(replace(claim, status=done), subresource="status")
        whose = f'"{self._volume.name}" {self._parts.node_name}'
        for one in (self._pod, claim):
            told = f"MountVolume.NodeExpandVolume succeeded for volume {whose}"
            self._parts.events.normal(one, "FileSystemResizeSuccessful", told)


def unknown(driver: str) -> str:
    return f"driver name {driver} not found in the list of registered CSI drivers"


def _give_to_group(place: Path, group: int, sparing: bool) -> None:
    """Raises OSError."""
    if not sparing or not has_group(place, group):
        set_group(place, group)
