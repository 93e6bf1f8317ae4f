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
from time import monotonic
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import until
from podling.kubelet.config import KubeletConfig
from podling.kubelet.csi.interface import DriverError
from podling.kubelet.csi.registration import CsiDrivers
from podling.kubelet.host.disk import VolumeUse
from podling.kubelet.pod.directories import PodDirectory, stored_pods
from podling.kubelet.volumes.csi import (
    EPHEMERAL,
    PERSISTENT,
    CsiVolume,
    check_lifecycle,
    is_attached,
    of_persistent_volume,
)
from podling.kubelet.volumes.csi_records import PLUGIN, CsiPlaces, CsiRecord, record_of, records_of
from podling.kubelet.volumes.csi_steps import CsiMountError, CsiParts, CsiSteps, unknown
from podling.kubelet.volumes.files import VolumeError
from podling.model.errors import StatusError
from podling.model.rules.attachments import attachment_name
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriver, CSIDriverSpec, CSITokenRequest, VolumeAttachment
from podling.process.mounts import unmount_under
from podling.process.waits import Backoff, woken

LONGEST_ATTACH = 123.0
"""Seconds that a pod waits for a volume to be attached until it says so; then it waits again."""
RETRY = Backoff(0.5, 122.0)
USE_SECONDS, LONGEST_USE = 60.0, 2.0
"""How long the use of a volume that a driver has told is known, and how long its answer is waited for."""

log = logging.getLogger(__name__)

Tokens = Callable[[Sequence[CSITokenRequest]], Awaitable[str]]
"""The tokens that a driver asks for, as `tokens_of` writes them."""


class _Use(NamedTuple):
    at: float
    use: VolumeUse | None


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
        self._client, self._config, self._told = client, config, told
        self._parts = CsiParts(client, drivers, events, config.node_name)
        self._in_use: Counter[str] = Counter()
        self._counted: set[tuple[str, str]] = set()
        """Uid of the pod and name of the volume, of those that are counted in use."""
        self._uses: dict[Path, _Use] = {}
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
        if volume.lifecycle == EPHEMERAL and self.drivers.get(volume.driver) is None:
            why = "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client"
            raise CsiMountError("SetUp", volume, f"{why}: {unknown(volume.driver)}")
        check_lifecycle(volume, spec)
        attachment = self._attachment_name(volume, spec)
        record = record_of(volume, self._config.node_name, attachment)
        places = CsiPlaces(self._config.csi_dir, directory, record)
        await asyncio.to_thread(places.record_pod)
        attached = await self._attached(pod, volume, record) if attachment else {}
        async with self._lock(record):
            mount = CsiSteps(self._parts, pod, volume, places, spec, attached)
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
            mount = CsiSteps(self._parts, pod, volume, places, spec, {})
            if spec is not None and spec.requires_republish:
                if attachment:
                    mount.attached = await self._attachment(volume, record)
                await mount.publish(await tokens(spec.token_requests))
            await mount.grow()

    async def use(self, volume: CsiVolume, path: Path) -> VolumeUse | None:
        """What is used of it where a pod has it. None if its driver does not tell. Raises DriverError and
        TimeoutError."""
        now = monotonic()
        self._uses = {place: kept for place, kept in self._uses.items() if now - kept.at < USE_SECONDS}
        if (known := self._uses.get(path)) is None:
            driver = self.drivers.get(volume.driver)
            if driver is None:
                return None
            async with asyncio.timeout(LONGEST_USE):
                known = self._uses[path] = _Use(now, await driver.use(volume.handle, str(path)))
        return known.use

    async def give_back(self, directory: PodDirectory) -> None:
        """All that the pod has. Raises VolumeError and OSError; then it may be called again."""
        if not directory.volume(PLUGIN, "").exists():
            return
        records = await asyncio.to_thread(lambda: list(records_of(directory)))
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

    async def newest(self, volume: CsiVolume) -> CsiVolume:
        """As its PersistentVolume says now, of a volume that is mounted. Raises StatusError and OSError."""
        if volume.lifecycle != PERSISTENT:
            return volume
        found = await self._client.get(PersistentVolume, volume.name, "")
        return of_persistent_volume(found, read_only=volume.read_only)

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
