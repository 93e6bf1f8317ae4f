"""The workers of all pods of the node: creating them, passing events on, replacing one that failed; and node
shutdown.

No pod is touched before the runtime has said what it runs and the API which pods there are (`begin`), so that
nothing is started twice and nothing that happens later is missed (R-INIT-11). `stop_everything` is for a node
that stops for good; the next kubelet on its root directory finds the stopped sandboxes and runs the pods
anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping

from podling.cri.interface import Runtime, RuntimeEvent, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.mounts import unmount_under
from podling.kubelet.logs.rotation import WrittenLog
from podling.kubelet.plan.admission import PREEMPTING, PREEMPTION_MESSAGE
from podling.kubelet.plan.ending import FAILED
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.observed import Termination
from podling.kubelet.worker.admission import NodeAdmission
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.observe import RuntimePod, observe, observe_until_answered
from podling.kubelet.worker.orphans import orphan
from podling.kubelet.worker.worker import PodWorker
from podling.model.types.pod import Pod

FIRST_RETRY = 0.5

log = logging.getLogger(__name__)


class PodWorkers:
    """`tasks` owns the workers. Pods are known by uid."""

    def __init__(self, node: NodeContext, tasks: asyncio.TaskGroup) -> None:
        self._node = node
        self._tasks = tasks
        self._workers: dict[str, PodWorker] = {}
        self._owners: dict[str, str] = {}
        self._done: set[str] = set()
        self._begun = False
        self._one_ended = asyncio.Event()
        self._admission = NodeAdmission(node, self._preempt)

    def get(self, uid: str) -> PodWorker | None:
        return self._workers.get(uid)

    def owner(self, runtime_id: str) -> PodWorker | None:
        """Whose container or sandbox it is."""
        return self._workers.get(self._owners.get(runtime_id, ""))

    def __iter__(self) -> Iterator[PodWorker]:
        return iter(self._workers.values())

    def employ(self, pod: Pod, found: RuntimePod | None = None) -> None:
        """Give a pod a worker that the API does not tell of; `found` is what the runtime has of it."""
        self._employ(pod, found)

    def end(self, uid: str) -> None:
        """The pod is not wanted any more; it has the grace it asked for."""
        if worker := self._workers.get(uid):
            worker.terminate(Termination())

    async def ended(self, uid: str) -> None:
        """Returns once the pod has no worker."""
        while uid in self._workers:
            self._one_ended.clear()
            await self._one_ended.wait()

    def written_logs(self) -> Iterator[WrittenLog]:
        """Those of running containers."""
        for worker in self._workers.values():
            directory = PodDirectory.of(worker.pod, self._node.config)
            for container in worker.observed.containers:
                if container.running:
                    path = directory.container_logs(container.name) / f"{container.attempt}.log"
                    yield WrittenLog(container.id, path)

    def begin(self, pods: Collection[Pod], found: Mapping[str, RuntimePod]) -> None:
        """The API's pods, and what the runtime has; what is only in the runtime is an orphan."""
        self._begun = True
        wanted = {pod.metadata.uid for pod in pods}
        # Who runs keeps his place, whoever else has come meanwhile.
        for pod in sorted(
            pods, key=lambda pod: (pod.metadata.uid not in found, pod.metadata.creation_timestamp)
        ):
            self._employ(pod, found.get(pod.metadata.uid))
        for uid in found.keys() - wanted:
            self._end_orphan(uid, found[uid])

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """From the informer. Before `begin` nothing is done: it brings them all."""
        if not self._begun:
            return
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._removed(old.metadata.uid)
        if new is not None:
            self._wanted(new)

    def runtime_event(self, event: RuntimeEvent) -> None:
        """Events of containers nobody owns are of no interest: they are not pods', or gone."""
        owner = self.owner(event.container_id)
        if owner is not None:
            owner.runtime_event(event)

    async def look_again(self) -> None:
        """Events may have been missed. A runtime that has just come back may answer nothing but events for a
        while; nobody would ask again if this gave up then."""
        marks = {uid: worker.record.mark() for uid, worker in self._workers.items()}
        found = await observe_until_answered(self._node.runtime)
        for uid, since in marks.items():
            if worker := self._workers.get(uid):
                worker.replace(found.get(uid) or RuntimePod("", ""), since)

    def _wanted(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if worker := self._workers.get(uid):
            worker.update(pod)
        elif uid not in self._done:
            self._employ(pod, None)

    def _removed(self, uid: str) -> None:
        self._done.discard(uid)
        if worker := self._workers.get(uid):
            worker.removed()

    def _end_orphan(self, uid: str, found: RuntimePod) -> None:
        log.info(
            "pod %s/%s is no longer known to the API; ending what runs of it", found.namespace, found.name
        )
        self._employ(orphan(uid, found, self._node.config.node_name), found).removed()

    def _employ(self, pod: Pod, found: RuntimePod | None) -> PodWorker:
        uid = pod.metadata.uid
        worker = self._workers[uid] = PodWorker(self._node, pod, lambda id_: self._claim(id_, uid))
        if found is not None:
            worker.replace(found, worker.record.mark())
        running = self._run(worker, known=found is not None)
        self._tasks.create_task(running, name=f"pod {pod.metadata.namespace}/{pod.metadata.name}")
        return worker

    async def _admit(self, worker: PodWorker, *, again: bool) -> None:
        if not worker.asks_for_room:
            return
        if worker.pod.metadata.deletion_timestamp:
            # It is ending and nobody is to judge it, but what still runs of it takes room.
            self._node.allocations.give(worker.pod)
            return
        refusal = await self._admission.admit(worker.pod, again=again)
        if refusal is None:
            worker.admitted()
        else:
            worker.refused(refusal)

    async def _preempt(self, pod: Pod) -> None:
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            self._node.events.warning(pod, PREEMPTING, PREEMPTION_MESSAGE)
            worker.terminate(Termination(PREEMPTING, PREEMPTION_MESSAGE, FAILED, is_disruption=True))
            await self._node.allocations.released(pod.metadata.uid)

    def _claim(self, runtime_id: str, uid: str) -> None:
        self._owners[runtime_id] = uid

    async def _run(self, worker: PodWorker, *, known: bool) -> None:
        """An error of the program itself costs its pod a new start of its worker, and no other pod
        anything. `known`: the runtime has something of the pod already."""
        uid = worker.pod.metadata.uid
        try:
            await self._admit(worker, again=known)
            await worker.run()
        except Exception:
            log.exception("worker of pod %s", uid)
            await asyncio.sleep(FIRST_RETRY)
            found = await observe_until_answered(self._node.runtime, uid)
            again = self._employ(worker.pod, found.get(uid))
            if worker.record.termination is not None:
                again.terminate(worker.record.termination)
            return
        del self._workers[uid]
        self._one_ended.set()
        self._owners = {id_: owner for id_, owner in self._owners.items() if owner != uid}
        if worker.record.termination is None:
            # The object may stay for a while, held by finalizers; its pod is over all the same.
            self._done.add(uid)


GRACE_SECONDS = 10


async def stop_everything(runtime: Runtime) -> None:
    """Containers are asked to end and have GRACE_SECONDS. Raises RuntimeFault when the runtime does not
    answer."""
    pods = await observe(runtime)
    async with asyncio.TaskGroup() as tasks:
        for pod in pods.values():
            tasks.create_task(_stop(runtime, pod))


async def _stop(runtime: Runtime, pod: RuntimePod) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            for container in pod.containers:
                if container.running:
                    tasks.create_task(runtime.stop_container(container.id, GRACE_SECONDS))
    except* RuntimeFault as faults:
        log.warning("containers of pod %s/%s: %s", pod.namespace, pod.name, faults.exceptions)
    for sandbox in pod.sandboxes:
        try:
            await runtime.stop_pod_sandbox(sandbox.id)
        except RuntimeFault as fault:
            log.warning("sandbox of pod %s/%s not stopped: %s", pod.namespace, pod.name, fault)


def unmount_volumes(config: KubeletConfig) -> None:
    if config.pods_dir.exists():
        unmount_under(config.pods_dir)
