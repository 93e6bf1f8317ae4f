"""The volumes of one pod during its life: set up, kept up to date, and torn down once.

    ConfigMap, Secret changed ──┐
    labels, annotations changed ┼─▶ stale ─▶ read the objects ─▶ write the files (a thread) ─▶ wait
    token to be renewed, retry ─┘

Volumes are set up while the sandbox is created; containers wait for both. A failure is reported as an event.
It is retried when an object changes, and after 0.5 s growing to about two minutes, as not every cause of a
failure can be watched.

An `image` volume (R-VOL-2) has the files of an image, read-only. A runtime that can mount images gets the
image in the container's mount. For any other runtime the kubelet mounts the files below the pod's directory,
one place for each image that a volume has had. The runtime holds the image under a name with the pod's uid,
so that what a killed kubelet leaves is found.

    <pod>/volumes/kubernetes.io~image/<volume>/<image>    held as podling/<uid>/<volume>/<image>
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.cri_config.environment import resource_value
from podling.kubelet.csi.interface import DriverError
from podling.kubelet.host.disk import VolumeUse, volume_use
from podling.kubelet.node.shared import KnownFeatures
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.host import ClaimedUse
from podling.kubelet.pod.sandbox import NodeFacts, runtime_handler
from podling.kubelet.volumes.claimed import volumes_of_claims
from podling.kubelet.volumes.container_mounts import MountSources, is_asked
from podling.kubelet.volumes.csi import CsiVolume, of_persistent_volume, of_pod, tokens_of
from podling.kubelet.volumes.csi_mounts import CsiMounts
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.objects import (
    DEFAULT_TOKEN_SECONDS,
    Objects,
    PodTokens,
    Sources,
    TokenKey,
    WatchedObjects,
    referenced_tokens,
    tells_of_pod,
)
from podling.kubelet.volumes.set_up import (
    IMAGE_PLUGIN,
    Layout,
    MountedVolume,
    SetUpError,
    set_up_volumes,
    update_volumes,
)
from podling.model.errors import StatusError
from podling.model.rules.references import volume_claim_of, volume_claims_of
from podling.model.time import Clock, rfc3339
from podling.model.types.container import Container, EphemeralContainerCommon
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.model.types.references import ResourceFieldSelector
from podling.model.types.storage import CSITokenRequest
from podling.model.types.volume import ImageVolumeSource
from podling.process.mounts import mount_image, unmount_under
from podling.process.waits import Backoff, woken

RETRY = Backoff(0.5, 122.0)
CSI_PERIOD = 60.0
"""Seconds after which CSI volumes are published again, where drivers want it, and grown, where they grew."""
_PREFIX = "podling"
"""Of the names under which the runtime holds images."""


class ClaimsError(VolumeError):
    """The devices that a pod claims cannot be prepared, which is asked for before its volumes are."""

    event = "FailedPrepareDynamicResources"


class VolumeNode(Protocol):
    """What the volumes of a pod use of its node."""

    @property
    def client(self) -> Client: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def events(self) -> EventRecorder: ...
    @property
    def facts(self) -> NodeFacts: ...
    @property
    def features(self) -> KnownFeatures: ...
    @property
    def objects(self) -> VolumeObjects: ...
    @property
    def runtime(self) -> Runtime: ...
    @property
    def watched(self) -> WatchedObjects: ...
    @property
    def csi(self) -> CsiMounts: ...


class VolumeObjects(Protocol):
    """Reads the ConfigMaps and Secrets of a pod's volumes. Raises StatusError or OSError."""

    async def for_volumes(self, pod: Pod) -> Objects: ...


class VolumeRecord(Protocol):
    """What the volumes of a pod report to its worker."""

    volumes_ready: bool
    volumes_error: str


class PodVolumes:
    """The volumes of one pod. `mounted` has them by name once all are set up, and is empty before."""

    def __init__(self, directory: PodDirectory, node: VolumeNode, record: VolumeRecord) -> None:
        self._directory = directory
        self._node = node
        self._record = record
        self._pod: Pod | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: asyncio.Future[Mapping[str, MountedVolume]] | None = None
        self._stale = asyncio.Event()
        self._sources = Sources(node.watched, self._stale.set)
        self._tokens = PodTokens(node.client, node.clock)
        self._images = ImageVolumes(directory, node.runtime)
        self._claimed: Mapping[str, PersistentVolume] = {}
        """By the pod's names, the volumes of claims."""
        self._csi: Mapping[str, CsiVolume] = {}
        """By the pod's names, the volumes of CSI drivers."""
        self.mounted: Mapping[str, MountedVolume] = {}

    def begin(self, pod: Pod, tasks: asyncio.TaskGroup, done: Callable[[], None]) -> None:
        """Set the volumes up and keep them up to date with the newest `pod`; `done` is called after each
        change of the record. To be called at each sync."""
        if self._pod is not None and self._pod is not pod and _facts(pod) != _facts(self._pod):
            self._stale.set()
        self._pod = pod
        if self._record.volumes_ready or self._task is not None:
            return
        if not pod.spec.volumes and not pod.spec.resource_claims:
            self._record.volumes_ready = True
            done()
            return
        self._task = tasks.create_task(self._keep(done))

    def give_up(self) -> None:
        """The pod is ending: stop setting up. Volumes that are set up are still kept up to date."""
        if self._task is not None and not self._record.volumes_ready:
            self._task.cancel()

    async def mount_sources(
        self, container: EphemeralContainerCommon, images: Mapping[str, str], environment: Mapping[str, str]
    ) -> MountSources:
        """What the container's mounts are made of; `images` has the image of each of its image volumes, which
        are mounted here if the runtime cannot do it. Raises RuntimeFault, StatusError and OSError."""
        recursive = False
        if any(is_asked(mount) for mount in container.volume_mounts):
            assert self._pod is not None
            handler = await runtime_handler(self._node.client, self._pod)
            recursive = handler in (await self._node.features.get()).recursive_read_only
        if not images or (await self._node.features.get()).mounts_images:
            return MountSources(self._directory, self.mounted, environment, images, recursive)
        here = {
            name: MountedVolume(await self._images.mount(name, image), sealed=True)
            for name, image in images.items()
        }
        mounted = {**self.mounted, **here}
        return MountSources(self._directory, mounted, environment, recursive_read_only=recursive)

    async def uses(self) -> Sequence[ClaimedUse]:
        """What is used of those that drivers or claims have made; without those of which nobody says it."""
        pod, found = self._pod, []
        for volume in pod.spec.volumes if pod is not None else ():
            mounted, claimed = self.mounted.get(volume.name), self._claimed.get(volume.name)
            csi = self._csi.get(volume.name)
            if pod is None or mounted is None:
                continue
            use: VolumeUse | None = None
            with suppress(OSError, DriverError, TimeoutError):
                if csi is not None:
                    use = await self._node.csi.use(csi, mounted.path)
                elif claimed is not None and claimed.spec.local is not None:
                    use = await asyncio.to_thread(volume_use, mounted.path)
            if use is not None:
                found.append(ClaimedUse(volume.name, volume_claim_of(pod, volume) or "", use))
        return found

    async def tear_down(self) -> None:
        """Unmount and delete them. Raises VolumeError, OSError and RuntimeFault."""
        if self._task is not None:
            self._task.cancel()
        if self._thread is not None:
            # A thread cannot be cancelled: wait, so that it makes nothing after the removal.
            await asyncio.wait((self._thread,))
        self.mounted = {}
        self._record.volumes_ready = False
        await self._images.release()
        await self._node.csi.give_back(self._directory)
        await asyncio.to_thread(self._directory.remove_volumes)

    async def _keep(self, done: Callable[[], None]) -> None:
        record, retry = self._record, RETRY.begin()
        try:
            while True:
                self._stale.clear()
                pod = self._pod
                wait: float | None = None
                assert pod is not None
                try:
                    self.mounted = await self._lay_out(pod)
                except (VolumeError, StatusError, OSError) as error:
                    # Volumes that are set up stay as they are.
                    if not record.volumes_ready:
                        record.volumes_error = str(error)
                    failed = error if isinstance(error, VolumeError) else VolumeError(str(error))
                    for one in (failed, *failed.more):
                        self._node.events.warning(pod, one.event, str(one))
                    wait = retry.next()
                else:
                    record.volumes_ready, record.volumes_error = True, ""
                    if (at := self._tokens.renew_at) is not None:
                        wait = max((at - self._node.clock.now()).total_seconds(), 0.0)
                    retry.reset()
                done()
                may_change = bool(self._sources.followed or self._tokens.renew_at or self._csi)
                if self._csi and record.volumes_ready:
                    wait = min(wait or CSI_PERIOD, CSI_PERIOD)
                if record.volumes_ready and not may_change and not any(map(tells_of_pod, pod.spec.volumes)):
                    return
                await woken(self._stale, wait)
        finally:
            self._sources.leave_all()
            self._node.csi.drivers.leave(self._stale.set)

    async def _lay_out(self, pod: Pod) -> Mapping[str, MountedVolume]:
        """Read the objects of the volumes, and set up or update these. Raises VolumeError, StatusError and
        OSError."""
        if pod.spec.resource_claims:
            raise ClaimsError("Failed to prepare dynamic resources: podling has no DRA drivers")
        objects = await self._node.objects.for_volumes(pod)
        if not self._record.volumes_ready:
            if any(volume_claims_of(pod)):
                self._claimed = await volumes_of_claims(self._node.client, pod)
                objects.volumes.update(self._claimed)
            self._csi = csi_volumes(pod, objects.volumes)
        self._sources.follow(pod, objects)
        for volume in pod.spec.volumes:
            for key in referenced_tokens((volume,)):
                try:
                    objects.tokens[key] = await self._tokens.get(pod, key)
                except (StatusError, OSError) as error:
                    raise SetUpError(volume.name, f"failed to fetch token: {error}") from error
        allocatable = self._node.facts.allocatable

        def resource(selector: ResourceFieldSelector) -> str:
            return resource_value(pod, selector, "", allocatable)

        memory = allocatable["memory"].value()
        ready = await self._of_drivers(pod)
        layout = Layout(pod, self._directory, objects, resource, self._node.clock.now(), memory, ready)
        if self._record.volumes_ready:
            await self._in_thread(update_volumes, layout)
            return self.mounted
        empty_dirs = (volume.empty_dir for volume in pod.spec.volumes)
        if layout.group is None and all(source is not None and not source.medium for source in empty_dirs):
            # Making emptyDirs on disk takes less time than handing them to a thread.
            return set_up_volumes(layout)
        return await self._in_thread(set_up_volumes, layout)

    async def _of_drivers(self, pod: Pod) -> dict[str, MountedVolume]:
        """Have the CSI volumes mounted; keep those up to date that are. Raises VolumeError, StatusError and
        OSError."""
        csi, ready = self._node.csi, {}

        async def tokens(requests: Sequence[CSITokenRequest]) -> str:
            keys = [
                TokenKey(one.audience, one.expiration_seconds or DEFAULT_TOKEN_SECONDS) for one in requests
            ]
            texts = [await self._tokens.get(pod, key) for key in keys]
            return tokens_of(
                (key.audience, text, rfc3339(self._tokens.expires(key)))
                for key, text in zip(keys, texts, strict=True)
            )

        if self._csi:
            # A driver that comes back is what a failure waits for.
            csi.drivers.follow(self._stale.set)
        for name, volume in self._csi.items():
            if self._record.volumes_ready:
                await csi.again(pod, self._directory, await csi.newest(volume), tokens)
            else:
                path = await csi.mount(pod, self._directory, volume, tokens)
                ready[name] = MountedVolume(path, volume.read_only, device=volume.block)
        return ready

    async def _in_thread(
        self, work: Callable[[Layout], Mapping[str, MountedVolume]], layout: Layout
    ) -> Mapping[str, MountedVolume]:
        self._thread = asyncio.get_running_loop().run_in_executor(None, work, layout)
        return await asyncio.shield(self._thread)


def csi_volumes(pod: Pod, claimed: Mapping[str, PersistentVolume]) -> dict[str, CsiVolume]:
    """By the pod's names, the volumes of CSI drivers."""
    found = {}
    for volume in pod.spec.volumes:
        bound, claim = claimed.get(volume.name), volume.persistent_volume_claim
        if volume.csi is not None:
            found[volume.name] = of_pod(pod, volume)
        elif bound is not None and bound.spec.csi is not None:
            read_only = claim is not None and claim.read_only
            found[volume.name] = of_persistent_volume(bound, read_only=read_only)
    return found


def _facts(pod: Pod) -> object:
    """The fields of a pod that a downwardAPI volume may show and that may change."""
    resources = [container.resources for container in (*pod.spec.init_containers, *pod.spec.containers)]
    return pod.metadata.labels, pod.metadata.annotations, resources


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
        """Where the files of `image` are mounted for this volume; mounted now if they are not."""
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
