"""The scheduler: pods without a node come in by informer, the best node goes out as a binding.

Deciding is one synchronous step that reads the cluster as it is. A pod is added to its node the moment that
is decided (it is *assumed* there), so the next one sees the room gone, and its binding is written while
others are decided. A pod that fits nowhere is parked until something happens that may help it; what it waits
for is its PodScheduled condition and a FailedScheduling event. If less important pods stand in its way, they
are told to go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from prometheus_client.metrics_core import Metric

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informers import Informers
from podling.model.disruption_budget import PodDisruptionBudget
from podling.model.errors import StatusError
from podling.model.namespace import Namespace
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.time import Clock
from podling.scheduler.api import SchedulerApi
from podling.scheduler.cluster import Cluster
from podling.scheduler.condition import SCHEDULER_ERROR, UNSCHEDULABLE
from podling.scheduler.decision import decide
from podling.scheduler.evaluations import Evaluations
from podling.scheduler.explanation import explain, explain_preemption
from podling.scheduler.metrics import BOUND, FAILED, REFUSED, Attempts, scheduler_metrics
from podling.scheduler.pod_info import PodInfo
from podling.scheduler.preemption import Candidate, candidates, choose, ineligible
from podling.scheduler.queue import SchedulingQueue, Waiting
from podling.scheduler.refusal import Refusal
from podling.scheduler.tracker import Tracker

SCHEDULER_NAME = "default-scheduler"
BINDERS = 16
"""Bindings under way at once: enough that they share the disk's flushes."""

log = logging.getLogger(__name__)


class _Binding(NamedTuple):
    waiting: Waiting
    node: str
    began: float
    """When its scheduling began."""


class Scheduler:
    """Binds the pods that ask for `name`."""

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

    def metrics(self) -> Iterable[Metric]:
        gated = sum(1 for pod in self._pods.items() if self._is_gated(pod))
        return scheduler_metrics(self._name, self._attempts, self._queue.places(), gated)

    def _is_gated(self, pod: Pod) -> bool:
        return bool(pod.spec.scheduling_gates) and pod.spec.scheduler_name == self._name

    async def run(self) -> None:
        """Schedule for ever; run it after the informers have synced."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(BINDERS):
                tasks.create_task(self._bind_forever())
            while True:
                waiting = self._queue.pop(_now())
                if waiting is None:
                    await self._something_to_do()
                else:
                    await self._schedule(waiting)
                    # Informers and bindings have their turn between two decisions.
                    await asyncio.sleep(0)

    async def _something_to_do(self) -> None:
        due = self._queue.due()
        self._wakeup.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._wakeup.wait()

    async def _schedule(self, waiting: Waiting) -> None:
        began = _now()
        try:
            decision = decide(waiting.pod, self._cluster, self._evaluations)
            if decision.node is None:
                await self._cannot(waiting, decision.refusals, began)
            else:
                self._assume(waiting.pod, decision.node.name)
                await self._bindings.put(_Binding(waiting, decision.node.name, began))
        except Exception:
            # An error of the program itself must not end scheduling for every other pod.
            log.exception("scheduling %s", "/".join(waiting.pod.key))
            self._ended(FAILED, began)
            self._queue.fail(waiting, _now())

    def _assume(self, pod: PodInfo, node: str) -> None:
        """Whatever it was promised, it is not to be counted twice."""
        self._cluster.nominate(pod, "")
        self._cluster.put_pod(pod, node)

    def _ended(self, result: str, began: float) -> None:
        self._attempts.ended(result, _now() - began)

    async def _cannot(self, waiting: Waiting, refusals: Mapping[str, Refusal], began: float) -> None:
        """Parked before anything is awaited: what happens from here on can wake it."""
        pod, nodes = waiting.pod, len(self._cluster.nodes)
        victims, why_not = self._preemption(waiting, refusals)
        self._queue.park(waiting, {refusal.filter for refusal in refusals.values()}, _now())
        self._ended(REFUSED, began)
        if victims is not None:
            self._cluster.nominate(pod, victims.node)
        message = explain(nodes, refusals.values(), why_not)
        nominated = self._cluster.nomination_of(pod.uid)
        try:
            await self._api.say_not_scheduled(pod.pod, UNSCHEDULABLE, message, nominated)
            if victims is not None:
                await self._preempt(waiting, victims)
        except* (StatusError, OSError) as errors:
            log.warning("%s is not scheduled: %s", "/".join(pod.key), errors.exceptions[0])
            self._queue.fail(waiting, _now())

    def _preemption(self, waiting: Waiting, refusals: Mapping[str, Refusal]) -> tuple[Candidate | None, str]:
        """Whom to preempt, or why nobody is preempted."""
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
            self._attempts.victims.add(len(chosen.victims))
            return chosen, ""
        self._cluster.nominate(waiting.pod, "")
        return None, explain_preemption(len(self._cluster.nodes), refused.values())

    async def _preempt(self, waiting: Waiting, chosen: Candidate) -> None:
        """Less important pods that were promised the node look for another: they may not fit there now."""
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
            binding = await self._bindings.get()
            try:
                await self._api.bind(binding.waiting.pod.pod, binding.node)
                self._ended(BOUND, binding.began)
            except Exception as error:
                await self._not_bound(binding, error)

    async def _not_bound(self, binding: _Binding, error: Exception) -> None:
        waiting, pod = binding.waiting, binding.waiting.pod
        self._cluster.drop_pod(pod.uid)
        self._tracker.left(pod)
        if self._queue.get(pod.uid) is not waiting or _is_gone(error):
            return
        self._ended(FAILED, binding.began)
        log.warning("binding %s: %s", "/".join(pod.key), error, exc_info=not _is_answer(error))
        message = f'binding rejected: running Bind plugin "DefaultBinder": {error}'
        with suppress(StatusError, OSError):
            await self._api.say_not_scheduled(pod.pod, SCHEDULER_ERROR, message, "")
        if self._queue.get(pod.uid) is waiting:
            self._queue.fail(waiting, _now())
            self._wakeup.set()


def _is_gone(error: Exception) -> bool:
    return isinstance(error, StatusError) and error.code == 404


def _is_answer(error: Exception) -> bool:
    """As opposed to an error of the program itself."""
    return isinstance(error, StatusError | OSError)


def _now() -> float:
    return asyncio.get_running_loop().time()
