"""Admits pods to the node or refuses them, before their worker makes anything.

The decisions are pure (`plan/admission.py`). Here is what has to be waited for: the Node object when it may
have changed, and pods that are preempted for a critical one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from podling.cri.interface import RuntimeFault
from podling.kubelet.host.machine import app_armor_enabled
from podling.kubelet.plan.admission import (
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
from podling.kubelet.worker.context import NodeContext
from podling.model.types.pod import Pod

Preempt = Callable[[Pod], Coroutine[None, None, None]]
"""End a pod to make room; returns when nothing of it runs any more."""

_NO_VICTIMS = (
    "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
    "pods to preempt: no set of running pods found to reclaim resources: "
)


class NodeAdmission:
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
        wrong = await self._misplaced(pod, again=again)
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
            return Enforcers(app_armor_enabled(), groups_policy=True)
        return Enforcers(app_armor_enabled(), features.groups_policy)

    async def _misplaced(self, pod: Pod, *, again: bool) -> list[Refusal]:
        """A refusal by the node's labels is only believed when they are what the API has now."""
        wrong = self._wrong(pod, again=again)
        if wrong and all(refusal.by_labels for refusal in wrong):
            await self._node.own_object.look()
            return self._wrong(pod, again=again)
        return wrong

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
