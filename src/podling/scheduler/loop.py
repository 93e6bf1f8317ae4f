"""The scheduler: pods without a node come in by informer, and the best node goes out as a binding.

A decision is one synchronous step that reads the cluster as it is. The pod is added to its node at once (it
is *assumed*), so that the next decision counts it, and its binding is written while other pods are decided. A
pod that fits nowhere is parked until a change that may help it; its PodScheduled condition and a
FailedScheduling event say what it waits for. If pods of lower priority are in its way, they are preempted.

`explain` words the event and the condition as kube-scheduler does. `SchedulerApi` makes the writes: bindings,
status patches (strategic merge), evictions. An object that no longer exists needs no write.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from prometheus_client.metrics_core import Metric

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Groups, Informers
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.rules.volume_binding import class_of
from podling.model.time import Clock, rfc3339
from podling.model.types.core import Namespace
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Binding, Pod
from podling.model.types.pod_status import PodCondition
from podling.model.types.policy import PodDisruptionBudget
from podling.model.types.references import ObjectReference
from podling.model.types.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from podling.process.waits import each, woken
from podling.scheduler.claims import missing
from podling.scheduler.cluster import Cluster
from podling.scheduler.decision import Evaluations, decide
from podling.scheduler.filter import VOLUME_BINDING, Refusal
from podling.scheduler.info import PodInfo
from podling.scheduler.metrics import BOUND, FAILED, REFUSED, Attempts, scheduler_metrics
from podling.scheduler.preemption import NOT_HELPFUL, PREEMPTED, Candidate, candidates, choose, ineligible
from podling.scheduler.queue import SchedulingQueue, Waiting
from podling.scheduler.tracker import Tracker
from podling.scheduler.volume_writes import VolumesError, VolumeWrites
from podling.scheduler.volumes import Assumed, Bindings, Storage, volume_state
from podling.scheduler.volumes import key_of as claim_key

Patch = dict[str, Any]

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
NO_NODES = "no nodes available to schedule pods"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
NO_CLAIMS = "no new claims to deallocate"
"""What Kubernetes says of the claims of a pod for which pods might be preempted; here none are allocated."""
SCHEDULER_NAME = "default-scheduler"
BINDER, PRE_BINDER = 'Bind plugin "DefaultBinder"', 'PreBind plugin "VolumeBinding"'
BINDERS = 16
"""Bindings written at a time: enough that they share fsyncs."""

log = logging.getLogger(__name__)


def explain(nodes: int, refusals: Iterable[Refusal], preemption: str = "") -> str:
    """`0/N nodes are available: …`: each reason with its number of nodes, in order of the text."""
    if not nodes:
        return NO_NODES
    told = _counted(nodes, Counter(reason for refusal in refusals for reason in refusal.reasons))
    return f"{told} {NO_CLAIMS}, preemption: {preemption}" if preemption else told


def explain_preemption(nodes: int, refusals: Iterable[Refusal]) -> str:
    """The part of the message about preemption. `refusals` are of the nodes that were tried; on all other
    nodes preemption cannot help."""
    looked_at = list(refusals)
    reasons = Counter(reason for refusal in looked_at for reason in refusal.reasons)
    if nodes > len(looked_at):
        reasons[NOT_HELPFUL] += nodes - len(looked_at)
    return _counted(nodes, reasons)


def _counted(nodes: int, reasons: Counter[str]) -> str:
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available: {listed}."


def not_scheduled(pod: Pod, reason: str, message: str, nominated: str, now: datetime) -> Patch | None:
    """The status patch of PodScheduled=False; None when the pod's status is the same already."""
    condition = _condition(pod, "PodScheduled", "False", reason, message, now)
    status: Patch = {"conditions": [condition]} if condition else {}
    if nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return _patch(pod, status) if status else None


def preempted(victim: Pod, preemptor: Pod, now: datetime) -> Patch | None:
    message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
    condition = _condition(victim, "DisruptionTarget", "True", PREEMPTED, message, now)
    return _patch(victim, {"conditions": [condition]}) if condition else None


def not_nominated(pod: Pod) -> Patch:
    return _patch(pod, {"nominatedNodeName": None})


def _condition(pod: Pod, type_: str, status: str, reason: str, message: str, now: datetime) -> Any:
    """The condition; its lastTransitionTime changes only with `status`."""
    standing = next((c for c in pod.status.conditions if c.type == type_), None)
    wanted = PodCondition(
        type=type_,
        observed_generation=pod.metadata.generation,
        status=status,
        last_transition_time=rfc3339(now),
        reason=reason,
        message=message,
    )
    if standing is not None and standing.status == status:
        wanted.last_transition_time = standing.last_transition_time
        wanted.last_probe_time = standing.last_probe_time
        if standing == wanted:
            return None
    return json.to_data(wanted)


def _patch(pod: Pod, status: Patch) -> Patch:
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


class SchedulerApi:
    def __init__(self, client: Client, events: EventRecorder, clock: Clock) -> None:
        self._client, self._events, self._clock = client, events, clock

    async def bind(self, pod: Pod, node: str) -> None:
        """Raises StatusError, OSError."""
        meta = pod.metadata
        binding = Binding(
            metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid),
            target=ObjectReference(kind="Node", name=node),
        )
        await self._client.create_subresource(Pod, meta.name, "binding", binding)
        self._events.normal(pod, "Scheduled", f"Successfully assigned {meta.namespace}/{meta.name} to {node}")

    async def say_not_scheduled(self, pod: Pod, reason: str, message: str, nominated: str) -> None:
        """Raises StatusError, OSError."""
        self._events.warning(pod, "FailedScheduling", message)
        await self._patch(pod, not_scheduled(pod, reason, message, nominated, self._clock.now()))

    async def preempt(self, victims: Iterable[PodInfo], node: str, preemptor: Pod) -> None:
        """Raises an ExceptionGroup of StatusError and OSError when some victims could not be evicted."""
        here = (victim.pod for victim in victims if not victim.pod.metadata.deletion_timestamp)
        await each(self._preempt(pod, node, preemptor) for pod in here)

    async def clear_nomination(self, pod: Pod) -> None:
        """Raises StatusError, OSError."""
        if pod.status.nominated_node_name:
            await self._patch(pod, not_nominated(pod))

    async def _preempt(self, victim: Pod, node: str, preemptor: Pod) -> None:
        await self._patch(victim, preempted(victim, preemptor, self._clock.now()))
        meta = victim.metadata
        try:
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except StatusError as error:
            # 409: another pod has the name by now.
            if error.code not in (404, 409):
                raise
            return
        self._events.normal(victim, "Preempted", f"Preempted by pod {preemptor.metadata.uid} on node {node}")

    async def _patch(self, pod: Pod, patch: Patch | None) -> None:
        if patch is None:
            return
        meta = pod.metadata
        try:
            await self._client.patch(
                Pod, meta.name, meta.namespace, patch, subresource="status", patch_type=STRATEGIC_PATCH
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise


class _Binding(NamedTuple):
    waiting: Waiting
    node: str
    began: float
    """When the scheduling of the pod began."""


class Scheduler:
    """Schedules the pods whose `schedulerName` is `name`."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        events: EventRecorder,
        clock: Clock,
        name: str = SCHEDULER_NAME,
    ) -> None:
        self._api = SchedulerApi(client, events, clock)
        self._cluster = Cluster()
        self._queue = SchedulingQueue()
        self._evaluations = Evaluations()
        self._wakeup = asyncio.Event()
        self._bindings: asyncio.Queue[_Binding] = asyncio.Queue(BINDERS)
        self._budgets = informers.of(PodDisruptionBudget)
        self._attempts = Attempts()
        self._name, self._pods = name, informers.of(Pod)
        self._tracker = Tracker(self._cluster, self._queue, name, _now, self._wakeup.set)
        informers.of(Namespace).subscribe(self._tracker.namespace_changed)
        informers.of(Node).subscribe(self._tracker.node_changed)
        self._pods.subscribe(self._tracker.pod_changed)
        self._claims = informers.of(PersistentVolumeClaim)
        self._volumes, self._classes = informers.of(PersistentVolume), informers.of(StorageClass)
        self._csi_nodes, attachments = informers.of(CSINode), informers.of(VolumeAttachment)
        attached = Groups(attachments, lambda one: one.spec.node_name)
        drivers, capacities = informers.of(CSIDriver), informers.of(CSIStorageCapacity)
        room = Groups(capacities, lambda one: one.storage_class_name)
        free = Groups(self._volumes, lambda one: class_of(one) if one.spec.claim_ref is None else None)
        named = Groups(self._volumes, lambda one: (ref := one.spec.claim_ref) and (ref.namespace, ref.name))
        self._storage = self._cluster.storage = Storage(
            self._claims.get,
            self._volumes.get,
            self._classes.get,
            lambda claim: (*named.of(claim_key(claim)), *free.of(class_of(claim))),
            Assumed(),
            self._csi_nodes.get,
            attached.of,
            drivers.get,
            room.of,
        )
        self._volume_writes = VolumeWrites(client, self._claims, self._pods)
        ours = self._claims, self._volumes, self._classes, self._csi_nodes
        for storage in (*ours, attachments, drivers, capacities):
            storage.subscribe(self._tracker.volumes_changed)

    def metrics(self) -> Iterable[Metric]:
        ours = (pod for pod in self._pods.items() if pod.spec.scheduler_name == self._name)
        gated = sum(1 for pod in ours if pod.spec.scheduling_gates)
        return scheduler_metrics(self._name, self._attempts, self._queue.places(), gated)

    async def run(self) -> None:
        """Schedule for ever; run it after the informers have synced."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(BINDERS):
                tasks.create_task(self._bind_forever())
            while True:
                waiting = self._queue.pop(_now())
                if waiting is None:
                    due = self._queue.due()
                    self._wakeup.clear()
                    await woken(self._wakeup, None if due is None else due - _now())
                else:
                    await self._schedule(waiting, tasks)
                    # Informers and bindings have their turn between two decisions.
                    await asyncio.sleep(0)

    async def _schedule(self, waiting: Waiting, tasks: asyncio.TaskGroup) -> None:
        began = _now()
        try:
            lacks = missing(waiting.pod.pod, self._claims.get, self._volumes.get, self._classes.get)
            nodes = self._cluster.nodes
            if lacks and nodes:
                # kube-scheduler ends the sentence with what preemption did not find.
                told = f"0/{len(nodes)} nodes are available: {lacks}. not found"
                await self._cannot(waiting, {}, began, told)
                return
            decision = decide(waiting.pod, self._cluster, self._evaluations)
            if decision.node is None:
                await self._cannot(waiting, decision.refusals, began)
            else:
                # The pod moves from nominated to assumed on the node, so that its requests count once.
                self._cluster.nominate(waiting.pod, "")
                name = decision.node.name
                state = volume_state(waiting.pod, self._storage, {})
                volumes = state.bindings(decision.node.node) if state is not None else None
                self._cluster.put_pod(waiting.pod, name)
                binding = _Binding(waiting, name, began)
                if volumes is not None and (volumes.found or volumes.made):
                    # It may take minutes, and must not hold up the others.
                    tasks.create_task(self._bind_with(volumes, binding))
                else:
                    await self._bindings.put(binding)
        except Exception:
            # An error of the program itself must not end scheduling for every other pod.
            log.exception("scheduling %s", "/".join(waiting.pod.key))
            self._ended(FAILED, began)
            self._queue.fail(waiting, _now())

    def _ended(self, result: str, began: float) -> None:
        self._attempts.ended(result, _now() - began)

    async def _cannot(
        self, waiting: Waiting, refusals: Mapping[str, Refusal], began: float, told: str = ""
    ) -> None:
        """Park the pod before anything is awaited, so that a change from here on can wake it. `told`: why no
        node was even asked."""
        pod, nodes = waiting.pod, len(self._cluster.nodes)
        victims, why_not = self._preemption(waiting, refusals)
        refused_by = {VOLUME_BINDING} if told else {refusal.filter for refusal in refusals.values()}
        self._queue.park(waiting, refused_by, _now())
        self._ended(REFUSED, began)
        if victims is not None:
            self._cluster.nominate(pod, victims.node)
        message = told or explain(nodes, refusals.values(), why_not)
        nominated = self._cluster.nomination_of(pod.uid)
        try:
            await self._api.say_not_scheduled(pod.pod, UNSCHEDULABLE, message, nominated)
            if victims is not None:
                await self._preempt(waiting, victims)
        except* (StatusError, OSError) as errors:
            log.warning("%s is not scheduled: %s", "/".join(pod.key), errors.exceptions[0])
            self._queue.fail(waiting, _now())

    def _preemption(self, waiting: Waiting, refusals: Mapping[str, Refusal]) -> tuple[Candidate | None, str]:
        """The candidate to preempt, or why preemption does not help."""
        if not refusals:
            return None, ""
        reason = ineligible(waiting.pod, self._cluster, refusals)
        if reason:
            return None, reason
        self._attempts.preemptions += 1
        budgets = list(self._budgets.items())
        offset = self._attempts.preemptions
        found, refused = candidates(waiting.pod, self._cluster, refusals, budgets, offset)
        if found:
            chosen = choose(found)
            self._attempts.victims.observe(len(chosen.victims))
            return chosen, ""
        self._cluster.nominate(waiting.pod, "")
        return None, explain_preemption(len(self._cluster.nodes), refused.values())

    async def _preempt(self, waiting: Waiting, chosen: Candidate) -> None:
        """Evict the victims. Pods of lower priority that were nominated to the node lose the nomination,
        because they may not fit there any more."""
        pod = waiting.pod
        promised = self._cluster.nominated.get(chosen.node, {})
        lesser = [other for other in promised.values() if other.priority < pod.priority]
        for other in lesser:
            self._cluster.nominate(other, "")
            self._queue.put(other, _now())
            await self._api.clear_nomination(other.pod)
        await self._api.preempt(chosen.victims, chosen.node, pod.pod)

    async def _bind_forever(self) -> None:
        while True:
            await self._bind(await self._bindings.get())

    async def _bind(self, binding: _Binding) -> None:
        try:
            await self._api.bind(binding.waiting.pod.pod, binding.node)
            self._ended(BOUND, binding.began)
        except Exception as error:
            await self._not_bound(binding, error, BINDER)

    async def _bind_with(self, volumes: Bindings, binding: _Binding) -> None:
        """The pod's claims first."""
        pod, assumed = binding.waiting.pod.pod, self._storage.assumed
        assumed.add(volumes, binding.node)
        try:
            await self._volume_writes.bind(pod, volumes, binding.node)
        except Exception as error:
            await self._not_bound(binding, error, PRE_BINDER)
        else:
            await self._bind(binding)
        finally:
            assumed.drop(volumes)

    async def _not_bound(self, binding: _Binding, error: Exception, plugin: str) -> None:
        waiting, pod = binding.waiting, binding.waiting.pod
        self._cluster.drop_pod(pod.uid)
        self._tracker.left(pod)
        # Of the claims' writes, 404 does not say that the pod is gone.
        is_gone = plugin == BINDER and isinstance(error, StatusError) and error.code == 404
        if self._queue.get(pod.uid) is not waiting or is_gone:
            return
        self._ended(FAILED, binding.began)
        # What neither the API server nor the network answered is a bug, and where it is stands in the log.
        is_answer = isinstance(error, StatusError | OSError | VolumesError)
        log.warning("binding %s: %s", "/".join(pod.key), error, exc_info=not is_answer)
        message = f"binding rejected: running {plugin}: {error}"
        with suppress(StatusError, OSError):
            await self._api.say_not_scheduled(pod.pod, SCHEDULER_ERROR, message, "")
        if self._queue.get(pod.uid) is waiting:
            self._queue.fail(waiting, _now())
            self._wakeup.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
