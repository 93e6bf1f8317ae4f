"""The volumes of one pod during its life: set up, kept up to date, and torn down once.

    ConfigMap, Secret changed ──┐
    labels, annotations changed ┼─▶ stale ─▶ read the objects ─▶ write the files (a thread) ─▶ wait
    token to be renewed, retry ─┘

Volumes are set up while the sandbox is created; containers wait for both. A failure is reported as an event.
It is retried when an object changes, and after 0.5 s growing to about two minutes, as not every cause of a
failure can be watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.cri_config.environment import resource_value
from podling.kubelet.node.features import KnownFeatures
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.node_facts import NodeFacts
from podling.kubelet.pod.runtime_handler import runtime_handler
from podling.kubelet.volumes.container_mounts import MountSources, is_asked
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.images import ImageVolumes
from podling.kubelet.volumes.objects import (
    Objects,
    Sources,
    TokenKey,
    WatchedObjects,
    referenced_tokens,
    tells_of_pod,
)
from podling.kubelet.volumes.set_up import Layout, MountedVolume, SetUpError, set_up_volumes, update_volumes
from podling.kubelet.volumes.tokens import PodTokens
from podling.model.errors import StatusError
from podling.model.time import Clock
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.pod import Pod
from podling.model.types.references import ResourceFieldSelector
from podling.process.backoff import Backoff
from podling.process.wake import woken

RETRY = Backoff(0.5, 122.0)


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
        self.mounted: Mapping[str, MountedVolume] = {}

    def begin(self, pod: Pod, tasks: asyncio.TaskGroup, done: Callable[[], None]) -> None:
        """Set the volumes up and keep them up to date with the newest `pod`; `done` is called after each
        change of the record. To be called at each sync."""
        if self._pod is not None and self._pod is not pod and _facts(pod) != _facts(self._pod):
            self._stale.set()
        self._pod = pod
        if self._record.volumes_ready or self._task is not None:
            return
        if not pod.spec.volumes:
            self._record.volumes_ready = True
            done()
            return
        self._task = tasks.create_task(self._follow(done))

    def give_up(self) -> None:
        """The pod is ending: stop setting up. Volumes that are set up are still kept up to date."""
        if self._task is not None and not self._record.volumes_ready:
            self._task.cancel()

    async def mount_sources(
        self, container: EphemeralContainerCommon, images: Mapping[str, str], environment: Mapping[str, str]
    ) -> MountSources:
        """What the container's mounts are made of; `images` has the image of each of its image volumes, which
        are mounted here if the runtime cannot do it. Raises RuntimeFault, StatusError and OSError."""
        recursive = any(is_asked(mount) for mount in container.volume_mounts) and await self._can_be_sealed()
        if not images or (await self._node.features.get()).mounts_images:
            return MountSources(self._directory, self.mounted, environment, images, recursive)
        here = {
            name: MountedVolume(await self._images.mount(name, image), sealed=True)
            for name, image in images.items()
        }
        mounted = {**self.mounted, **here}
        return MountSources(self._directory, mounted, environment, recursive_read_only=recursive)

    async def _can_be_sealed(self) -> bool:
        """Whether the runtime handler of this pod can make recursively read-only mounts."""
        assert self._pod is not None
        handler = await runtime_handler(self._node.client, self._pod)
        return handler in (await self._node.features.get()).recursive_read_only

    async def tear_down(self) -> None:
        """Unmount and delete them. Raises OSError and RuntimeFault."""
        if self._task is not None:
            self._task.cancel()
        if self._thread is not None:
            # A thread cannot be cancelled: wait, so that it makes nothing after the removal.
            await asyncio.wait((self._thread,))
        self.mounted = {}
        self._record.volumes_ready = False
        await self._images.release()
        await asyncio.to_thread(self._directory.remove_volumes)

    async def _follow(self, done: Callable[[], None]) -> None:
        try:
            await self._keep(done)
        finally:
            self._sources.leave_all()

    async def _keep(self, done: Callable[[], None]) -> None:
        retry = RETRY.begin()
        while True:
            self._stale.clear()
            pod = self._pod
            assert pod is not None
            try:
                self.mounted = await self._lay_out(pod)
            except (VolumeError, StatusError, OSError) as error:
                self._failed(pod, str(error))
                wait: float | None = retry.next()
            else:
                self._record.volumes_ready = True
                self._record.volumes_error = ""
                wait = self._until_renewal()
                retry.reset()
            done()
            if self._record.volumes_ready and not self._may_change(pod):
                return
            await woken(self._stale, wait)

    def _failed(self, pod: Pod, why: str) -> None:
        """Report a failure. Volumes that are set up stay as they are."""
        if not self._record.volumes_ready:
            self._record.volumes_error = why
        self._node.events.warning(pod, "FailedMount", why)

    def _may_change(self, pod: Pod) -> bool:
        renewed = self._tokens.renew_at is not None
        return renewed or self._sources.followed or any(tells_of_pod(volume) for volume in pod.spec.volumes)

    def _until_renewal(self) -> float | None:
        at = self._tokens.renew_at
        return None if at is None else max((at - self._node.clock.now()).total_seconds(), 0.0)

    async def _lay_out(self, pod: Pod) -> Mapping[str, MountedVolume]:
        objects = await self._node.objects.for_volumes(pod)
        self._sources.follow(pod, objects)
        for volume in pod.spec.volumes:
            for key in referenced_tokens((volume,)):
                objects.tokens[key] = await self._token(pod, volume.name, key)
        layout = self._layout(pod, objects)
        if self._record.volumes_ready:
            await self._in_thread(update_volumes, layout)
            return self.mounted
        return set_up_volumes(layout) if _is_quick(pod) else await self._in_thread(set_up_volumes, layout)

    async def _token(self, pod: Pod, volume: str, key: TokenKey) -> str:
        try:
            return await self._tokens.get(pod, key)
        except (StatusError, OSError) as error:
            raise SetUpError(volume, f"failed to fetch token: {error}") from error

    def _layout(self, pod: Pod, objects: Objects) -> Layout:
        allocatable = self._node.facts.allocatable

        def resource(selector: ResourceFieldSelector) -> str:
            return resource_value(pod, selector, "", allocatable)

        memory = allocatable["memory"].value()
        return Layout(pod, self._directory, objects, resource, self._node.clock.now(), memory)

    async def _in_thread(
        self, work: Callable[[Layout], Mapping[str, MountedVolume]], layout: Layout
    ) -> Mapping[str, MountedVolume]:
        self._thread = asyncio.get_running_loop().run_in_executor(None, work, layout)
        return await asyncio.shield(self._thread)


def _facts(pod: Pod) -> object:
    """The fields of a pod that a downwardAPI volume may show and that may change."""
    resources = [container.resources for container in (*pod.spec.init_containers, *pod.spec.containers)]
    return pod.metadata.labels, pod.metadata.annotations, resources


def _is_quick(pod: Pod) -> bool:
    """Only emptyDirs on disk: making these takes less time than handing them to a thread."""
    context = pod.spec.security_context
    if context is not None and context.fs_group is not None:
        return False
    return all(volume.empty_dir is not None and not volume.empty_dir.medium for volume in pod.spec.volumes)
