"""What happens to a pod outside the runtime when nothing of it runs any more.

First its last status is written, then volumes and cgroup are removed, then the API object is deleted if it is
marked for deletion; meanwhile the sandbox is removed. After a crash in between, what the API does not know
any more is an orphan and is cleaned up (`orphans.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from podling.cri.interface import RuntimeFault
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.status.writer import StatusWriter
from podling.kubelet.volumes.pod_volumes import PodVolumes
from podling.kubelet.worker.context import NodeContext
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.process.backoff import Backoff

RETRY = Backoff(0.1, 30.0)

log = logging.getLogger(__name__)


class PodEnding:
    """`begin` may be called again and again; each part is done once."""

    def __init__(
        self, node: NodeContext, directory: PodDirectory, volumes: PodVolumes, writer: StatusWriter
    ) -> None:
        self._node = node
        self._directory = directory
        self._volumes = volumes
        self._writer = writer
        self._given_back: asyncio.Task[None] | None = None
        self._let_go = False

    def begin(self, pod: Pod, tasks: asyncio.TaskGroup) -> None:
        if self._given_back is None:
            self._given_back = tasks.create_task(self._give_back(pod))
        if pod.metadata.deletion_timestamp and not self._let_go:
            self._let_go = True
            tasks.create_task(self._delete(pod, self._given_back))

    async def finish(self, uid: str) -> None:
        """Wait until volumes are unmounted, then remove the files, logs and cgroup of a deleted pod whose
        containers and sandboxes are gone from the runtime."""
        if self._given_back is not None:
            await self._given_back
        await self._until_done(f"files of pod {uid}", self._remove_files)
        if not self._node.cgroups.remove(uid):
            log.warning("cgroup of pod %s is still busy", uid)

    async def _give_back(self, pod: Pod) -> None:
        await self._until_done(f"volumes of pod {pod.metadata.uid}", self._volumes.tear_down)
        self._node.cgroups.remove(pod.metadata.uid)

    async def _remove_files(self) -> None:
        await asyncio.to_thread(self._directory.remove)
        await asyncio.to_thread(self._directory.remove_logs)

    async def _delete(self, pod: Pod, given_back: asyncio.Task[None]) -> None:
        await given_back
        # Strictly after the last status: once the object is gone there is nowhere to write it.
        await self._writer.flushed()
        meta = pod.metadata
        wait = RETRY.begin()
        while True:
            try:
                await self._node.client.delete(Pod, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid)
                return
            except StatusError as error:
                if error.code in (404, 409):
                    return
                log.warning("pod %s/%s not deleted: %s", meta.namespace, meta.name, error.message)
            except OSError as error:
                log.warning("pod %s/%s not deleted: %s", meta.namespace, meta.name, error)
            await asyncio.sleep(wait.next())

    async def _until_done(self, what: str, step: Callable[[], Awaitable[None]]) -> None:
        wait = RETRY.begin()
        while True:
            try:
                await step()
                return
            except (OSError, RuntimeFault) as error:
                log.warning("%s not given back: %s", what, error)
            await asyncio.sleep(wait.next())
