"""The workers of all pods of the node: admitting pods, creating workers, passing events on, replacing a
worker that failed; and node shutdown.

No pod is touched before the runtime has said what it runs and the API which pods there are (`begin`), so that
nothing is started twice and nothing that happens later is missed (R-INIT-11). `stop_everything` is for a node
that stops for good; the next kubelet on its root directory finds the stopped sandboxes and runs the pods
anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence

from podling.cri.interface import Runtime, RuntimeEvent, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.logs.rotation import WrittenLog
from podling.kubelet.plan.admission import (
    PREEMPTING,
    PREEMPTION_MESSAGE,
    Enforcers,
    Refusal,
    Shortage,
    forbidden_sysctl,
    is_critical,
    misplaced,
    unenforceable,
    unfit,
    victims,
)
from podling.kubelet.plan.ending import FAILED
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.observed import Termination
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.observe import RuntimePod, observe, observe_until_answered
from podling.kubelet.worker.orphans import orphan
from podling.kubelet.worker.worker import PodWorker
from podling.model.types.pod import Pod
from podling.process.mounts import unmount_under
from podling.process.waits import each

FIRST_RETRY = 0.5
GRACE_SECONDS = 10
"""What a pod has to end when the node stops; less if it asks for less."""
LONGEST_STOP = 30.0
"""Seconds after which a pod is stopped without order. Sidecars have a little more than the grace period."""
"""For containers of a node that stops."""

Preempt = Callable[[Pod], Coroutine[None, None, None]]
"""End a pod to make room; returns when nothing of it runs any more."""

_NO_VICTIMS = (
    "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
    "pods to preempt: no set of running pods found to reclaim resources: "
)

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

    def employ(self, pod: Pod, found: RuntimePod | None = None) -> PodWorker:
        """Give a pod a worker; `found` is what the runtime has of it."""
        uid = pod.metadata.uid

        def claim(runtime_id: str) -> None:
            self._owners[runtime_id] = uid

        worker = self._workers[uid] = PodWorker(self._node, pod, claim)
        if found is not None:
            worker.replace(found, worker.record.mark())
        running = self._run(worker, known=found is not None)
        self._tasks.create_task(running, name=f"pod {pod.metadata.namespace}/{pod.metadata.name}")
        return worker

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
            self.employ(pod, found.get(pod.metadata.uid))
        for uid in found.keys() - wanted:
            left = found[uid]
            log.info(
                "pod %s/%s is no longer known to the API; ending what runs of it", left.namespace, left.name
            )
            self.employ(orphan(uid, left, self._node.config.node_name), left).removed()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """From the informer. Before `begin` nothing is done: it brings them all."""
        if not self._begun:
            return
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._done.discard(old.metadata.uid)
            if worker := self._workers.get(old.metadata.uid):
                worker.removed()
        if new is None:
            return
        if worker := self._workers.get(new.metadata.uid):
            worker.update(new)
        elif new.metadata.uid not in self._done:
            self.employ(new)

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

    async def _preempt(self, pod: Pod) -> None:
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            self._node.events.warning(pod, PREEMPTING, PREEMPTION_MESSAGE)
            worker.terminate(Termination(PREEMPTING, PREEMPTION_MESSAGE, FAILED, is_disruption=True))
            await self._node.allocations.released(pod.metadata.uid)

    async def _run(self, worker: PodWorker, *, known: bool) -> None:
        """An error of the program itself costs its pod a new start of its worker, and no other pod
        anything. `known`: the runtime has something of the pod already."""
        uid = worker.pod.metadata.uid
        try:
            if worker.asks_for_room and worker.pod.metadata.deletion_timestamp:
                # It is ending and nobody is to judge it, but what still runs of it takes room.
                self._node.allocations.give(worker.pod)
            elif worker.asks_for_room:
                refusal = await self._admission.admit(worker.pod, again=known)
                if refusal is None:
                    worker.admitted()
                else:
                    worker.refused(refusal)
            await worker.run()
        except Exception:
            log.exception("worker of pod %s", uid)
            await asyncio.sleep(FIRST_RETRY)
            found = await observe_until_answered(self._node.runtime, uid)
            again = self.employ(worker.pod, found.get(uid))
            if worker.record.termination is not None:
                again.terminate(worker.record.termination)
            return
        del self._workers[uid]
        self._one_ended.set()
        self._owners = {id_: owner for id_, owner in self._owners.items() if owner != uid}
        if worker.record.termination is None:
            # The object may stay for a while, held by finalizers; its pod is over all the same.
            self._done.add(uid)


class NodeAdmission:
    """Admits pods to the node or refuses them, before their worker makes anything. The decisions are pure
    (`plan/admission.py`). Here is what has to be waited for: the Node object when it may have changed, and
    pods that are preempted for a critical one."""

    def __init__(self, node: NodeContext, preempt: Preempt) -> None:
        self._node = node
        self._preempt = preempt

    async def admit(self, pod: Pod, *, again: bool) -> Refusal | None:
        """None: the pod has its share. `again`: it was taken before, by an earlier kubelet."""
        if refusal := forbidden_sysctl(pod, self._node.config.allowed_unsafe_sysctls) or unfit(pod):
            return refusal
        if not again and (refusal := unenforceable(pod, await self._enforcers())):
            return refusal
        if not again and (refusal := self._node.pressure.refusal(pod)):
            return refusal
        wrong = self._wrong(pod, again=again)
        if wrong and all(refusal.by_labels for refusal in wrong):
            # A refusal by the node's labels is only believed when they are what the API has now.
            await self._node.own_object.look()
            wrong = self._wrong(pod, again=again)
        short = self._node.allocations.shortages(pod)
        if short and not wrong and is_critical(pod):
            return await self._make_room(pod, short)
        if short and not is_critical(pod):
            return short[0].refusal
        if wrong:
            return wrong[0]
        self._node.allocations.give(pod)
        return None

    async def _enforcers(self) -> Enforcers:
        try:
            features = await self._node.features.get()
        except RuntimeFault:
            # It has to answer before anything of the pod can run.
            return Enforcers(self._node.facts.app_armor, groups_policy=True)
        return Enforcers(self._node.facts.app_armor, features.groups_policy)

    def _wrong(self, pod: Pod, *, again: bool) -> list[Refusal]:
        others = self._node.allocations.others(pod)
        return list(misplaced(pod, self._node.own_object.node, others, again=again))

    async def _make_room(self, pod: Pod, short: Sequence[Shortage]) -> Refusal | None:
        missing = {shortage.resource: shortage.missing for shortage in short}
        chosen = victims(pod, self._node.allocations.others(pod), missing)
        if chosen is None:
            listed = "".join(f"(res: {name}, q: {need}), " for name, need in missing.items())
            return Refusal("UnexpectedAdmissionError", f"{_NO_VICTIMS}[{listed}]")
        # Given at once, so that nobody else takes what the others leave.
        self._node.allocations.give(pod)
        async with asyncio.TaskGroup() as tasks:
            for victim in chosen:
                tasks.create_task(self._preempt(victim))
        return None


async def stop_everything(runtime: Runtime, workers: PodWorkers | None) -> None:
    """Each pod has GRACE_SECONDS, preStop hooks included; its sidecars end last. Raises RuntimeFault when the
    runtime does not answer."""
    pods = await observe(runtime)
    async with asyncio.TaskGroup() as tasks:
        for uid, pod in pods.items():
            tasks.create_task(_stop(runtime, pod, workers.get(uid) if workers else None))


async def _stop(runtime: Runtime, pod: RuntimePod, worker: PodWorker | None) -> None:
    if worker is not None:
        worker.replace(pod, worker.record.mark())
        try:
            async with asyncio.timeout(LONGEST_STOP):
                await worker.stop(GRACE_SECONDS)
            return
        except TimeoutError:
            log.warning("pod %s/%s does not end in its order", pod.namespace, pod.name)
    # Nobody knows what it wanted, or the runtime does not do as it is told.
    try:
        running = (container for container in pod.containers if container.running)
        await each(runtime.stop_container(container.id, GRACE_SECONDS) for container in running)
    except* RuntimeFault as faults:
        log.warning("containers of pod %s/%s: %s", pod.namespace, pod.name, faults.exceptions)
    for sandbox in pod.sandboxes:
        try:
            await runtime.stop_pod_sandbox(sandbox.id)
        except RuntimeFault as fault:
            log.warning("sandbox of pod %s/%s not stopped: %s", pod.namespace, pod.name, fault)


def unmount_volumes(config: KubeletConfig) -> None:
    """Unmount the volumes of all pods, on a node that stops."""
    for directory in (config.pods_dir, config.csi_dir):
        if directory.exists():
            unmount_under(directory)
