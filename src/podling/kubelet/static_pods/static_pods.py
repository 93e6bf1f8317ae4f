"""Runs the static pods of the node: a worker for each, and a mirror pod at the API server.

    manifests ──┐                      ┌──▶ worker of the pod (one at a time of a name)
                ├──▶ wake, by name ▶ keep
    mirrors  ───┘                      └──▶ mirror created, deleted

A pod whose file has changed is a new pod, and starts when the old one has ended. A mirror pod is made from
the static pod and never the other way round: one that somebody deletes is created again, and one whose pod
has ended or changed is deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from enum import Enum

import msgspec

from podling.client.client import Client
from podling.kubelet.node.reporter import NodeReporter
from podling.kubelet.static_pods.files import CONFIG_HASH, ManifestDirectory
from podling.kubelet.worker.workers import PodWorkers
from podling.model.errors import StatusError
from podling.model.rules.status import MIRROR
from podling.model.types.meta import ObjectMeta, OwnerReference
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodStatus
from podling.process.waits import woken

RETRY = 10.0
"""Seconds until a mirror that could not be made or deleted is tried again."""
Name = tuple[str, str]

log = logging.getLogger(__name__)


class MirrorStep(Enum):
    """What the mirror of a pod needs next."""

    NOTHING = "nothing"
    CREATE = "create"
    DELETE = "delete"


def mirrors(mirror: Pod, pod: Pod) -> bool:
    """Whether the mirror was made from this pod, as its file is now."""
    return mirror.metadata.annotations.get(MIRROR) == pod.metadata.annotations.get(CONFIG_HASH)


def next_step(pod: Pod | None, mirror: Pod | None) -> MirrorStep:
    """`pod` is the static pod of the file, `mirror` the server's pod of its name; None if there is none."""
    if mirror is None:
        return MirrorStep.CREATE if pod is not None else MirrorStep.NOTHING
    if pod is None or mirror.metadata.deletion_timestamp or not mirrors(mirror, pod):
        return MirrorStep.DELETE
    return MirrorStep.NOTHING


def mirror_of(pod: Pod, node: Node) -> Pod:
    """The mirror pod to be created. Its owner is the Node, so that it is collected with the Node."""
    meta = pod.metadata
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid, controller=True
    )
    return msgspec.structs.replace(
        pod,
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations={**meta.annotations, MIRROR: meta.annotations[CONFIG_HASH]},
            owner_references=[owner],
        ),
        status=PodStatus(),
    )


class _Kept(msgspec.Struct):
    """The state of one name."""

    wanted: Pod | None = None
    """The pod of the file."""
    running: Pod | None = None
    """The pod that has a worker."""
    mirror: Pod | None = None
    """The server's mirror pod."""
    wake: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def is_settled(self) -> bool:
        return self.wanted is None and self.running is None and self.mirror is None


class StaticPods:
    """The static pods of the node. `run()` it. No worker is made before `begin`. Without a directory, only
    mirrors that an earlier kubelet left are deleted."""

    def __init__(self, client: Client, node: NodeReporter, directory: ManifestDirectory | None) -> None:
        self._client = client
        self._node = node
        self._directory = directory
        self._kept: dict[Name, _Kept] = {}
        self._read = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._workers: PodWorkers | None = None
        self._knows_mirrors = False

    async def run(self) -> None:
        """Follow the files; also the owner of all tasks that keep pods."""
        async with self._tasks:
            if self._directory is None:
                self._read.set()
                # Whoever else keeps a pod still needs the group of tasks.
                await asyncio.Event().wait()
                return
            async for pods in self._directory.follow():
                wanted = {_name(pod): pod for pod in pods}
                for name in self._kept.keys() - wanted.keys():
                    self._kept[name].wanted = None
                    self._kept[name].wake.set()
                for name, pod in wanted.items():
                    kept = self._of(name)
                    if kept.wanted is None or kept.wanted.metadata.uid != pod.metadata.uid:
                        kept.wanted = pod
                        kept.wake.set()
                self._read.set()

    async def first(self) -> list[Pod]:
        """The pods of the files as a kubelet finds them when it starts."""
        await self._read.wait()
        return [kept.wanted for kept in self._kept.values() if kept.wanted is not None]

    def begin(self, workers: PodWorkers, begun: list[Pod]) -> None:
        """Start making workers and mirrors; the pods in `begun` have workers already."""
        self._workers = workers
        for pod in begun:
            self._of(_name(pod)).running = pod
        for name, kept in self._kept.items():
            self._tasks.create_task(self._keep(name, kept, workers))

    def mirrors_known(self) -> None:
        """The informer has synced: from now on mirrors are created and deleted."""
        self._knows_mirrors = True
        for kept in self._kept.values():
            kept.wake.set()

    def mirror_changed(self, old: Pod | None, new: Pod | None) -> None:
        """From the informer: an object that is, or was, a mirror."""
        changed = new or old
        assert changed is not None
        kept = self._of(_name(changed))
        if new is not None:
            kept.mirror = new
        elif kept.mirror is not None and kept.mirror.metadata.uid == changed.metadata.uid:
            kept.mirror = None
        self._tell_worker(kept)
        kept.wake.set()

    def pods(self) -> Iterator[Pod]:
        """Those that have workers."""
        return (kept.running for kept in self._kept.values() if kept.running is not None)

    def pod(self, namespace: str, name: str) -> Pod | None:
        kept = self._kept.get((namespace, name))
        return kept.running if kept else None

    def _of(self, name: Name) -> _Kept:
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = _Kept()
            if self._workers is not None:
                self._tasks.create_task(self._keep(name, kept, self._workers))
        return kept

    async def _keep(self, name: Name, kept: _Kept, workers: PodWorkers) -> None:
        while not kept.is_settled:
            kept.wake.clear()
            running = kept.running
            if running is None and kept.wanted is None and kept.mirror is not None:
                # What an earlier kubelet ran of it is being ended as an orphan.
                await workers.ended(kept.mirror.metadata.annotations.get(CONFIG_HASH, ""))
            if running is not None and (
                kept.wanted is None or running.metadata.uid != kept.wanted.metadata.uid
            ):
                workers.end(running.metadata.uid)
                await workers.ended(running.metadata.uid)
                kept.running = None
            if kept.running is None and kept.wanted is not None:
                kept.running = kept.wanted
                workers.employ(kept.wanted)
                self._tell_worker(kept)
            again = None if await self._keep_mirror(name, kept) else RETRY
            if kept.is_settled:
                break
            await woken(kept.wake, again)
        del self._kept[name]

    async def _keep_mirror(self, name: Name, kept: _Kept) -> bool:
        """Create or delete the mirror if it needs it; False when it has to be tried again."""
        step = next_step(kept.wanted, kept.mirror) if self._knows_mirrors else MirrorStep.NOTHING
        try:
            if step is MirrorStep.CREATE:
                await self._node.wait_registered()
                if kept.wanted is not None:
                    made = await self._client.create(mirror_of(kept.wanted, self._node.node))
                    kept.mirror = kept.mirror or made
                    self._tell_worker(kept)
            elif step is MirrorStep.DELETE and kept.mirror is not None:
                # Without grace, as nothing runs for a mirror; its static pod has a grace period of its own.
                meta = kept.mirror.metadata
                await self._client.delete(Pod, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid)
        except (StatusError, OSError) as error:
            # A mirror that is gone, or another's, need not be deleted.
            gone = isinstance(error, StatusError) and error.code in (404, 409)
            if step is not MirrorStep.DELETE or not gone:
                log.warning("mirror of static pod %s/%s: %s", *name, error)
                return False
        return True

    def _tell_worker(self, kept: _Kept) -> None:
        """Give the worker the mirror to write the status to, if that was made from its pod."""
        if self._workers is None or kept.running is None:
            return
        if worker := self._workers.get(kept.running.metadata.uid):
            own = kept.mirror is not None and mirrors(kept.mirror, kept.running)
            worker.mirrored(kept.mirror if own else None)


def _name(pod: Pod) -> Name:
    return pod.metadata.namespace, pod.metadata.name
