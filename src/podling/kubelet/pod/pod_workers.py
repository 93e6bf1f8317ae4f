"""All workers of the node: who has one, which runtime event is whose, and what happens when one is lost.

No pod is touched before the runtime has said what it runs and the API which pods there are (`begin`), so that
nothing is started twice and nothing that happens from then on is missed (R-INIT-11).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping

from podling.cri.interface import Runtime, RuntimeEvent, RuntimeFault
from podling.kubelet.node.node_context import NodeContext
from podling.kubelet.pod.observe import RuntimePod, observe
from podling.kubelet.pod.orphans import orphan
from podling.kubelet.pod_worker import PodWorker
from podling.model.pod import Pod

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0

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

    def get(self, uid: str) -> PodWorker | None:
        return self._workers.get(uid)

    def owner(self, runtime_id: str) -> PodWorker | None:
        """Whose container or sandbox it is."""
        return self._workers.get(self._owners.get(runtime_id, ""))

    def __iter__(self) -> Iterator[PodWorker]:
        return iter(self._workers.values())

    def begin(self, pods: Iterable[Pod], found: Mapping[str, RuntimePod]) -> None:
        """The API's pods, and what the runtime has; what is only in the runtime is an orphan."""
        self._begun = True
        wanted = {pod.metadata.uid: pod for pod in pods}
        for uid, pod in wanted.items():
            self._employ(pod, found.get(uid))
        for uid in found.keys() - wanted.keys():
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
        """Events may have been missed. Raises RuntimeFault."""
        marks = {uid: worker.record.mark() for uid, worker in self._workers.items()}
        found = await observe(self._node.runtime)
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
        self._tasks.create_task(self._run(worker), name=f"pod {pod.metadata.namespace}/{pod.metadata.name}")
        return worker

    def _claim(self, runtime_id: str, uid: str) -> None:
        self._owners[runtime_id] = uid

    async def _run(self, worker: PodWorker) -> None:
        """An error of the program itself costs its pod a new start of its worker, and no other pod
        anything."""
        uid = worker.pod.metadata.uid
        try:
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
        self._owners = {id_: owner for id_, owner in self._owners.items() if owner != uid}
        if worker.record.termination is None:
            # The object may stay for a while, held by finalizers; its pod is over all the same.
            self._done.add(uid)


async def observe_until_answered(runtime: Runtime, uid: str = "") -> dict[str, RuntimePod]:
    wait = FIRST_RETRY
    while True:
        try:
            return await observe(runtime, uid)
        except RuntimeFault as fault:
            log.warning("the runtime cannot say what it runs: %s", fault)
        await asyncio.sleep(wait)
        wait = min(wait * 2, LONGEST_RETRY)
