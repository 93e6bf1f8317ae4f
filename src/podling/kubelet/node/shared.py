"""What all pods of the node share: its resources and the pressure it is under, one informer of the services
that containers get variables for, and what the runtime can do.

A pod keeps what it was admitted with until it is resized. A deferred resize is judged again whenever another
pod gives resources back. Sums are kept here only; the decisions are the pure functions of `plan/`. The
eviction manager sets the pressure conditions, and pod admission asks for them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from datetime import datetime

import msgspec

from podling.client.client import Client
from podling.client.informer import Informer
from podling.cri.interface import Runtime, RuntimeFeatures
from podling.kubelet.cri_config.environment import LinkedService, ServiceAddress, service_variables
from podling.kubelet.plan.admission import (
    Amounts,
    Refusal,
    Shortage,
    amounts,
    is_critical,
    is_static,
    shortages,
)
from podling.kubelet.plan.resize import ResizeAnswer, first_to_be_resized, judge
from podling.kubelet.pod.containers import ConfigError
from podling.model.rules.placement import tolerates
from podling.model.rules.resources import BEST_EFFORT, qos_class
from podling.model.types.container import ResourceList
from podling.model.types.node import Taint
from podling.model.types.pod import Pod

EVICTED = "Evicted"
MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE = "MemoryPressure", "DiskPressure", "PIDPressure"
MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
SYNC_SECONDS = 5.0
"""How long a container waits for the first list of services. It comes in moments, unless RBAC denies it."""


class _Asked(msgspec.Struct, frozen=True):
    """A resize that has not been accepted."""

    pod: Pod
    since: datetime
    answer: Callable[[ResizeAnswer], None]


class Allocations:
    """The resources allocated to each pod, by uid, out of the node's `allocatable`."""

    def __init__(self, allocatable: ResourceList) -> None:
        self.allocatable = allocatable
        self._pods: dict[str, Pod] = {}
        self._amounts: dict[str, Amounts] = {}
        self._used: Counter[str] = Counter()
        self._asked: dict[str, _Asked] = {}
        self._waiting: dict[str, asyncio.Event] = {}

    def others(self, pod: Pod) -> Iterator[Pod]:
        return (other for uid, other in self._pods.items() if uid != pod.metadata.uid)

    def has(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._pods

    def shortages(self, pod: Pod) -> list[Shortage]:
        """The resources of which too little is left for the pod beside all others."""
        used = self._used - Counter(self._amounts.get(pod.metadata.uid, {}))
        return list(shortages(amounts(pod), used, self.allocatable))

    def give(self, pod: Pod) -> None:
        """Allocate what the pod requests, in place of what it had."""
        uid = pod.metadata.uid
        self._take_back(uid)
        self._pods[uid] = pod
        self._amounts[uid] = amounts(pod)
        self._used.update(self._amounts[uid])

    def release(self, uid: str) -> None:
        """Nothing of the pod runs any more: free its resources and judge deferred resizes again."""
        self._asked.pop(uid, None)
        if self._take_back(uid):
            self._settle()
        if waiting := self._waiting.pop(uid, None):
            waiting.set()

    async def released(self, uid: str) -> None:
        """Returns once nothing of the pod runs."""
        if uid in self._pods:
            await self._waiting.setdefault(uid, asyncio.Event()).wait()

    def resize(self, pod: Pod, now: datetime, answer: Callable[[ResizeAnswer], None]) -> None:
        """`pod` requests other resources than it has. `answer` is called at once, and again after each
        release until it is not "Deferred" any more."""
        known = self._asked.get(pod.metadata.uid)
        self._asked[pod.metadata.uid] = _Asked(pod, known.since if known else now, answer)
        self._settle()

    def forget_resize(self, uid: str) -> None:
        """The pod's spec is back at what is allocated."""
        self._asked.pop(uid, None)

    def _take_back(self, uid: str) -> bool:
        if self._pods.pop(uid, None) is None:
            return False
        self._used.subtract(self._amounts.pop(uid))
        return True

    def _settle(self) -> None:
        """Judge all requested resizes, the most important first, so that resources one gives back can go to
        another."""

        def importance(asked: _Asked) -> tuple[object, ...]:
            has = self._amounts.get(asked.pod.metadata.uid, {})
            return (*first_to_be_resized(asked.pod, amounts(asked.pod), has), asked.since)

        for asked in sorted(self._asked.values(), key=importance):
            uid = asked.pod.metadata.uid
            answer = judge(asked.pod, self.allocatable, self.shortages(asked.pod))
            if answer.accepted:
                self.give(asked.pod)
            if not answer.may_change:
                del self._asked[uid]
            asked.answer(answer)


class NodePressure:
    """The pressure conditions of the node, and what they mean for a pod to be admitted."""

    def __init__(self) -> None:
        self.conditions: Set[str] = frozenset()
        """The node conditions that are True, such as `MemoryPressure`. The eviction manager sets them."""

    def refusal(self, pod: Pod) -> Refusal | None:
        """A node under pressure takes critical pods only; if it is memory alone, all but those that ask for
        none."""
        conditions = self.conditions
        if not conditions or is_critical(pod):
            return None
        tolerated = any(tolerates(toleration, MEMORY_TAINT) for toleration in pod.spec.tolerations)
        if conditions == {MEMORY_PRESSURE} and (qos_class(pod) != BEST_EFFORT or tolerated):
            return None
        return Refusal(EVICTED, f"The node had condition: [{' '.join(sorted(conditions))}]. ")


class NodeServices:
    """`run()` it. `api_server` is as in `service_variables`."""

    def __init__(self, client: Client, api_server: tuple[str, int] | None) -> None:
        self._informer = Informer(client, LinkedService)
        self._informer.subscribe(self._changed)
        self._api_server = ServiceAddress(*api_server) if api_server else None
        self._made: dict[tuple[str, bool | None], Mapping[str, str]] = {}
        """Since the last change of a service: of a thousand they are some eight thousand variables, which the
        containers of a namespace have in common."""

    async def run(self) -> None:
        await self._informer.run()

    async def variables(self, pod: Pod) -> Mapping[str, str]:
        """The service variables of a pod. Raises ConfigError if services could not be listed; a static pod
        does not wait for them, as it must run without a server."""
        if not is_static(pod):
            try:
                async with asyncio.timeout(SYNC_SECONDS):
                    await self._informer.wait_synced()
            except TimeoutError:
                why = "services have not yet been read at least once, cannot construct envvars"
                raise ConfigError(why) from None
        key = pod.metadata.namespace, pod.spec.enable_service_links
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = service_variables(pod, self._informer.items(), self._api_server)
        return made

    def _changed(self, old: LinkedService | None, new: LinkedService | None) -> None:
        self._made.clear()


class KnownFeatures:
    """The runtime's features, asked for once, until they are forgotten because it may be another."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: RuntimeFeatures | None = None

    async def get(self) -> RuntimeFeatures:
        """Raises RuntimeFault."""
        if self._known is None:
            self._known = await self._runtime.features()
        return self._known

    def forget(self) -> None:
        self._known = None
