"""A pod's volumes while it lives here: set up until they are there, and given back once.

They are laid out while the sandbox is being made; containers wait for both. A volume that cannot be had is
said in an event and tried again, half a second later at first, at most every two minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from podling.kubelet.node.node_context import NodeContext
from podling.kubelet.pod.pod_directories import PodDirectory
from podling.kubelet.pod.pod_record import PodRecord
from podling.kubelet.runtime_config.downward import resource_value
from podling.kubelet.volumes.payload import VolumeError
from podling.kubelet.volumes.set_up import Layout, MountedVolume, set_up_volumes
from podling.model.errors import StatusError
from podling.model.pod import Pod
from podling.model.references import ResourceFieldSelector

FIRST_RETRY = 0.5
LONGEST_RETRY = 122.0


class PodVolumes:
    """`mounted` says where each volume is; empty until all are set up."""

    def __init__(self, directory: PodDirectory, node: NodeContext, record: PodRecord) -> None:
        self._directory = directory
        self._node = node
        self._record = record
        self._task: asyncio.Task[None] | None = None
        self._thread: asyncio.Future[dict[str, MountedVolume]] | None = None
        self.mounted: Mapping[str, MountedVolume] = {}

    def begin(self, pod: Pod, tasks: asyncio.TaskGroup, done: Callable[[], None]) -> None:
        """Set up once; `done` is called whenever the record says something new."""
        if self._record.volumes_ready or self._task is not None:
            return
        if not pod.spec.volumes:
            self._record.volumes_ready = True
            done()
            return
        self._task = tasks.create_task(self._until_set_up(pod, done))

    def give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def tear_down(self) -> None:
        """Unmount and delete them. Raises OSError."""
        if self._thread is not None:
            # A thread cannot be cancelled; what it is still laying out must not be raced.
            await asyncio.wait((self._thread,))
        self.mounted = {}
        self._record.volumes_ready = False
        await asyncio.to_thread(self._directory.remove_volumes)

    async def _until_set_up(self, pod: Pod, done: Callable[[], None]) -> None:
        wait = FIRST_RETRY
        while True:
            try:
                self.mounted = await self._set_up(pod)
            except (VolumeError, StatusError, OSError) as error:
                self._record.volumes_error = str(error)
                self._node.events.warning(pod, "FailedMount", str(error))
            else:
                self._record.volumes_ready = True
                self._record.volumes_error = ""
                done()
                return
            done()
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_RETRY)

    async def _set_up(self, pod: Pod) -> Mapping[str, MountedVolume]:
        objects = await self._node.objects.for_volumes(pod)

        def resource(selector: ResourceFieldSelector) -> str:
            return resource_value(pod, selector, "", self._node.facts.allocatable)

        layout = Layout(pod, self._directory, objects, resource, self._node.clock.now())
        if _is_quick(pod):
            return set_up_volumes(layout)
        self._thread = asyncio.get_running_loop().run_in_executor(None, set_up_volumes, layout)
        return await asyncio.shield(self._thread)


def _is_quick(pod: Pod) -> bool:
    """A few empty directories are made faster than a thread is asked to make them."""
    context = pod.spec.security_context
    if context is not None and context.fs_group is not None:
        return False
    return all(volume.empty_dir is not None and not volume.empty_dir.medium for volume in pod.spec.volumes)
