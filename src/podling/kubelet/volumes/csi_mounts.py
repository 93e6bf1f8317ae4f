"""Mounts CSI volumes into pods and gives them back, by asking their drivers.

    record ─▶ in use (Node status) ─▶ attached ─▶ NodeStageVolume ─▶ NodePublishVolume ─▶ fsGroup ─▶ grown
    NodeUnpublishVolume ─▶ NodeUnstageVolume, if no other pod has it ─▶ record removed ─▶ not in use

All steps may be repeated, as CSI demands of drivers, and after a kill they are, for all that is recorded. One
step at a time is under way of a volume, whatever pods want of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import until
from podling.kubelet.config import KubeletConfig
from podling.kubelet.csi.interface import Access, DriverError, Staged
from podling.kubelet.csi.registration import CsiDrivers
from podling.kubelet.pod.directories import PodDirectory, stored_pods
from podling.kubelet.volumes.claimed import has_group
from podling.kubelet.volumes.csi import (
    PERSISTENT,
    CsiVolume,
    SecretName,
    check_lifecycle,
    is_attached,
    of_persistent_volume,
    publish_context,
    takes_group,
)
from podling.kubelet.volumes.csi_records import CsiPlaces, CsiRecord, record_of, records_of
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import set_group
from podling.model.errors import StatusError
from podling.model.rules.attachments import attachment_name
from podling.model.rules.volume_binding import STORAGE
from podling.model.types.core import Secret
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriver, CSIDriverSpec, CSITokenRequest, VolumeAttachment
from podling.process.mounts import unmount_under
from podling.process.waits import Backoff, woken

if TYPE_CHECKING:
    from podling.kubelet.csi.driver import Driver

LONGEST_ATTACH = 123.0
"""Seconds that a pod waits for a volume to be attached until it says so; then it waits again."""
RETRY = Backoff(0.5, 122.0)
ON_ROOT_MISMATCH = "OnRootMismatch"
_RESIZING = ("Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError")
"""The conditions of a claim that is being grown."""

log = logging.getLogger(__name__)

Tokens = Callable[[Sequence[CSITokenRequest]], Awaitable[str]]
"""The tokens that a driver asks for, as `tokens_of` writes them."""


class CsiMountError(VolumeError):
    """A step failed for one volume."""

    def __init__(self, step: str, volume: CsiVolume, why: object) -> None:
        kind = "MapVolume" if volume.block else "MountVolume"
        super().__init__(f'{kind}.{step} failed for volume "{volume.name}" : {why}')
        self.event = "FailedMapVolume" if volume.block else "FailedMount"


class InUse(Protocol):
    """Tells the API server which volumes the node has."""

    async def tell_in_use(self, names: Sequence[str]) -> None:
        """Returns when the Node's status has these, or what was said since."""


class CsiMounts:
    """The CSI volumes of all pods of the node. `load()` it once, before the node's status is written."""

    def __init__(
        self, client: Client, drivers: CsiDrivers, events: EventRecorder, config: KubeletConfig, told: InUse
    ) -> None:
        self.drivers = drivers
        self._client, self._events, self._config, self._told = client, events, config, told
        self._in_use: Counter[str] = Counter()
        self._counted: set[tuple[str, str]] = set()
        """Uid of the pod and name of the volume, of those that are counted in use."""
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def load(self) -> list[str]:
        """What was in use before this kubelet began. Blocking. Raises OSError."""
        for uid in stored_pods(self._config.pods_dir):
            for record in records_of(self._directory(uid)):
                if record.attachment:
                    self._count(uid, record, +1)
        return sorted(self._in_use)

    async def mount(self, pod: Pod, directory: PodDirectory, volume: CsiVolume, tokens: Tokens) -> Path:
        """Where it is for the pod: a directory, or a device. Raises VolumeError, StatusError and OSError."""
        spec = await self._spec(volume.driver)
        check_lifecycle(volume, spec)
        attachment = self._attachment_name(volume, spec)
        record = record_of(volume, self._config.node_name, attachment)
        places = CsiPlaces(self._config.csi_dir, directory, record)
        await asyncio.to_thread(places.record_pod)
        attached = await self._attached(pod, volume, record) if attachment else {}
        async with self._lock(record):
            mount = _Mount(self, pod, volume, places, spec, attached)
            await mount.stage()
            await mount.publish(await tokens(spec.token_requests if spec else ()))
            await mount.grow()
        return places.target

    async def again(self, pod: Pod, directory: PodDirectory, volume: CsiVolume, tokens: Tokens) -> None:
        """Of a volume that is mounted: publish it again if its driver wants that, and grow what has grown.
        Raises VolumeError, StatusError and OSError."""
        spec = await self._spec(volume.driver)
        attachment = self._attachment_name(volume, spec)
        record = record_of(volume, self._config.node_name, attachment)
        places = CsiPlaces(self._config.csi_dir, directory, record)
        async with self._lock(record):
            mount = _Mount(self, pod, volume, places, spec, {})
            if spec is not None and spec.requires_republish:
                if attachment:
                    mount.attached = await self._attachment(volume, record)
                await mount.publish(await tokens(spec.token_requests))
            await mount.grow()

    async def give_back(self, directory: PodDirectory) -> None:
        """All that the pod has. Raises VolumeError and OSError; then it may be called again."""
        records = await asyncio.to_thread(lambda: list(records_of(directory)))
        if not records:
            return
        # A part of a volume that a container had would keep its file system busy.
        await asyncio.to_thread(unmount_under, directory.path / "volume-subpaths")
        for record in records:
            async with self._lock(record):
                await self._give_back(directory, record)

    async def _give_back(self, directory: PodDirectory, record: CsiRecord) -> None:
        places = CsiPlaces(self._config.csi_dir, directory, record)
        driver = self.drivers.get(record.driver)
        if driver is None:
            raise VolumeError(f'volume "{record.name}": {unknown(record.driver)}')
        try:
            await driver.unpublish(record.handle, str(places.target))
            if await asyncio.to_thread(places.unpublished):
                if await driver.stages():
                    await driver.unstage(record.handle, str(places.staging))
                await asyncio.to_thread(places.unstaged)
        except DriverError as error:
            raise VolumeError(f'volume "{record.name}": {error}') from error
        await asyncio.to_thread(places.forget_pod)
        if record.attachment:
            self._count(directory.path.name, record, -1)
            await self._told.tell_in_use(sorted(self._in_use))

    async def clear(self, uid: str) -> None:
        """Give back what a pod has left that nobody knows any more, however long its drivers are away, and
        remove its directory."""
        directory, retry = self._directory(uid), RETRY.begin()
        while True:
            try:
                await self.give_back(directory)
                await asyncio.to_thread(directory.remove)
                return
            except (VolumeError, OSError) as error:
                log.warning("what pod %s left is not given back: %s", uid, error)
            changed = asyncio.Event()
            self.drivers.follow(changed.set)
            await woken(changed, retry.next())
            self.drivers.leave(changed.set)

    def _attachment_name(self, volume: CsiVolume, spec: CSIDriverSpec | None) -> str:
        """Empty if it is not attached."""
        if not is_attached(volume, spec):
            return ""
        return attachment_name(volume.driver, volume.handle, self._config.node_name)

    async def _spec(self, driver: str) -> CSIDriverSpec | None:
        try:
            return (await self._client.get(CSIDriver, driver)).spec
        except StatusError as error:
            if error.code != 404:
                raise
            return None

    async def _attached(self, pod: Pod, volume: CsiVolume, record: CsiRecord) -> Mapping[str, str]:
        """What the driver's controller said when it attached the volume. The node says first that it has the
        volume: from then on nobody detaches it."""
        self._count(pod.metadata.uid, record, +1)
        name = record.unique_name
        try:
            async with asyncio.timeout(LONGEST_ATTACH):
                await self._told.tell_in_use(sorted(self._in_use))
                await until(
                    self._client,
                    Node,
                    "",
                    self._config.node_name,
                    lambda node: any(one.name == name for one in node.status.volumes_attached),
                )
        except TimeoutError:
            raise VolumeError(
                f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], "
                f"unattached volumes=[{volume.name}], failed to process volumes=[]: context deadline exceeded"
            ) from None
        return await self._attachment(volume, record)

    async def _attachment(self, volume: CsiVolume, record: CsiRecord) -> Mapping[str, str]:
        try:
            found = (await self._client.get(VolumeAttachment, record.attachment)).status
        except StatusError as error:
            raise CsiMountError("WaitForAttach", volume, error) from error
        if not found.attached:
            why = found.attach_error.message if found.attach_error else "volume attachment is not attached"
            raise CsiMountError("WaitForAttach", volume, why)
        return found.attachment_metadata

    async def secrets(self, name: SecretName | None) -> dict[str, str]:
        """Raises StatusError and OSError."""
        if name is None:
            return {}
        found = await self._client.get(Secret, name.name, name.namespace)
        return {key: value.decode(errors="surrogateescape") for key, value in found.data.items()}

    async def claim_of(self, volume: CsiVolume) -> PersistentVolumeClaim | None:
        ref = volume.claim
        return await self._client.get(PersistentVolumeClaim, ref.name, ref.namespace) if ref else None

    async def newest(self, volume: CsiVolume) -> CsiVolume:
        """As its PersistentVolume says now, of a volume that is mounted. Raises StatusError and OSError."""
        if volume.lifecycle != PERSISTENT:
            return volume
        found = await self._client.get(PersistentVolume, volume.name, "")
        return of_persistent_volume(found, read_only=volume.read_only)

    async def grown(self, pod: Pod, claim: PersistentVolumeClaim, volume: CsiVolume) -> None:
        """Raises StatusError and OSError."""
        assert volume.size is not None
        status = claim.status
        done = replace(
            status,
            capacity={**status.capacity, STORAGE: volume.size},
            conditions=[one for one in status.conditions if one.type not in _RESIZING],
            allocated_resource_statuses={
                key: value for key, value in status.allocated_resource_statuses.items() if key != STORAGE
            },
        )
        await self._client.update(replace(claim, status=done), subresource="status")
        told = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.name}" {self._config.node_name}'
        for one in (pod, claim):
            self._events.normal(one, "FileSystemResizeSuccessful", told)

    def _count(self, uid: str, record: CsiRecord, change: int) -> None:
        key = uid, record.name
        if (change > 0) == (key in self._counted):
            return
        (self._counted.add if change > 0 else self._counted.discard)(key)
        self._in_use[record.unique_name] += change
        self._in_use += Counter()

    def _directory(self, uid: str) -> PodDirectory:
        """Of a pod of which only the uid is known."""
        return PodDirectory(self._config.pods_dir, self._config.log_dir, "", "", uid)

    def _lock(self, record: CsiRecord) -> asyncio.Lock:
        key = record.driver, record.handle
        return self._locks.setdefault(key, asyncio.Lock())


class _Mount:
    """The steps of one volume that a pod gets. They raise VolumeError, StatusError and OSError."""

    def __init__(
        self,
        mounts: CsiMounts,
        pod: Pod,
        volume: CsiVolume,
        places: CsiPlaces,
        spec: CSIDriverSpec | None,
        attached: Mapping[str, str],
    ) -> None:
        self._mounts, self._pod, self._volume = mounts, pod, volume
        self._places, self._spec = places, spec
        self.attached = attached

    def _driver(self, step: str) -> Driver:
        found = self._mounts.drivers.get(self._volume.driver)
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
        secrets = await self._mounts.secrets(volume.stage_secret)
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
        secrets = {**await self._mounts.secrets(volume.publish_secret), **more}
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
        claim = await self._mounts.claim_of(volume)
        if claim is None or volume.size is None:
            return
        if claim.status.capacity.get(STORAGE, volume.size) >= volume.size:
            return
        driver = self._driver("NodeExpandVolume")
        try:
            if not await driver.expands():
                return
            secrets = await self._mounts.secrets(volume.expand_secret)
            staged = await self._staged(driver)
            await driver.expand(staged, str(self._places.target), volume.size.value(), secrets)
        except DriverError as error:
            raise CsiMountError("NodeExpandVolume", volume, error) from error
        await self._mounts.grown(self._pod, claim, volume)


def unknown(driver: str) -> str:
    return f"driver name {driver} not found in the list of registered CSI drivers"


def _give_to_group(place: Path, group: int, sparing: bool) -> None:
    """Raises OSError."""
    if not sparing or not has_group(place, group):
        set_group(place, group)
