"""The resources that are allocated to each pod of the node, and the resizes that wait for resources.

A pod keeps what it was admitted with until it is resized. A deferred resize is judged again whenever another
pod gives resources back. Sums are kept here only; the decisions are the pure functions of `plan/`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from podling.kubelet.plan.admission import Amounts, Shortage, amounts, shortages
from podling.kubelet.plan.resize import ResizeAnswer, first_to_be_resized, judge
from podling.model.types.container import ResourceList
from podling.model.types.pod import Pod


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
        for asked in sorted(self._asked.values(), key=self._importance):
            uid = asked.pod.metadata.uid
            answer = judge(asked.pod, self.allocatable, self.shortages(asked.pod))
            if answer.accepted:
                self.give(asked.pod)
            if not answer.may_change:
                del self._asked[uid]
            asked.answer(answer)

    def _importance(self, asked: _Asked) -> tuple[object, ...]:
        has = self._amounts.get(asked.pod.metadata.uid, {})
        return (*first_to_be_resized(asked.pod, amounts(asked.pod), has), asked.since)
