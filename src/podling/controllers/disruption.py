"""The status of PodDisruptionBudgets, and the pod condition DisruptionTarget.

An eviction takes one of the allowed disruptions by a write of the same status, so a status computed from
older numbers is refused as a conflict and computed again. A pod that was to be evicted and still exists after
two minutes counts as healthy again. A percentage, and what `maxUnavailable` is taken from, is of the pods
that the owners are to have (`disruption_scale.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.controllers.disruption_scale import NoScale, Scales, unmanaged
from podling.controllers.endpoints import is_ready
from podling.model.codec import json
from podling.model.selectors import from_label_selector, go_text
from podling.model.time import Clock, parse_time, rfc3339
from podling.model.types.meta import Condition
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodCondition
from podling.model.types.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus

STRATEGIC = "application/strategic-merge-patch+json"
CONFIRMED_WITHIN = timedelta(minutes=2)
"""An evicted pod that still is not being deleted after this time counts as healthy again."""
TELLER = "controllermanager"
"""Who tells the events."""
UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the "
    "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account "
    'for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)


async def disrupt(
    client: Client, pod: Pod, reason: str, message: str, now: datetime, *, phase: str = ""
) -> None:
    """Set the condition DisruptionTarget, which says why the system is about to end the pod. Raises
    StatusError."""
    condition = PodCondition(
        type="DisruptionTarget",
        observed_generation=pod.metadata.generation,
        status="True",
        last_transition_time=rfc3339(now),
        reason=reason,
        message=message,
    )
    others = [one.type for one in pod.status.conditions if one.type != condition.type]
    status = {
        "conditions": [json.to_data(condition)],
        "$setElementOrder/conditions": [{"type": type} for type in (*others, condition.type)],
        **({"phase": phase, "observedGeneration": pod.metadata.generation} if phase else {}),
    }
    meta = pod.metadata
    patch = {"metadata": {"uid": meta.uid}, "status": status}
    await client.patch(Pod, meta.name, meta.namespace, patch, subresource="status", patch_type=STRATEGIC)


class DisruptionBudgets:
    name = "disruption"

    def __init__(
        self,
        client: Client,
        budgets: Informer[PodDisruptionBudget],
        pods: Informer[Pod],
        scales: Scales,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock = client, events, clock
        self._budgets, self._pods, self._scales = budgets, pods, scales
        budgets.subscribe(own_key(self.queue))
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        budget = self._budgets.get(*key)
        if budget is None:
            return
        selector = from_label_selector(budget.spec.selector)
        pods = [
            pod for pod in self._pods.of_namespace(key[0]).values() if selector.matches(pod.metadata.labels)
        ]
        now = self._clock.now()
        if not pods:
            self._events.normal(budget, "NoPods", "No matching pods found")
        try:
            expected = self._scales.expected(pods) if is_of_scale(budget.spec) else len(pods)
            wanted = status(budget, pods, expected, now)
            if is_of_scale(budget.spec) and unmanaged(pods):
                told = UNMANAGED.format(go_text(budget.spec.selector))
                self._events.warning(budget, "UnmanagedPods", told)
        except NoScale as error:
            told = f"Failed to calculate the number of expected pods: {error}"
            self._events.warning(budget, "CalculateExpectedPodCountFailed", told)
            wanted = failed(budget, str(error), now)
        if wanted.disrupted_pods:
            self.queue.add_after(key, CONFIRMED_WITHIN.total_seconds())
        if wanted != budget.status:
            with gone_is_done():
                await self._client.update(replace(budget, status=wanted), subresource="status")

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pods = [pod for pod in (old, new) if pod is not None]
        namespace = pods[0].metadata.namespace
        for name, budget in self._budgets.of_namespace(namespace).items():
            selector = from_label_selector(budget.spec.selector)
            if any(selector.matches(pod.metadata.labels) for pod in pods):
                self.queue.add((namespace, name))


def is_of_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Whether it depends on how many pods there are to be."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def status(
    budget: PodDisruptionBudget, pods: Sequence[Pod], expected: int, now: datetime
) -> PodDisruptionBudgetStatus:
    """The status of `budget`, which selects `pods`."""
    going = {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp}
    staying = {pod.metadata.name for pod in pods} - going
    # Evictions that were allowed and whose pods are not being deleted yet.
    disrupted: dict[str, str | None] = {
        name: since
        for name, since in budget.status.disrupted_pods.items()
        if name in staying and since and now - parse_time(since) < CONFIRMED_WITHIN
    }
    unhealthy = going | set(disrupted)
    healthy = sum(1 for pod in pods if is_ready(pod) and pod.metadata.name not in unhealthy)
    desired = desired_healthy(budget.spec, expected)
    allowed = max(healthy - desired, 0) if expected else 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    return PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=_conditions(budget, bool(allowed), budget.metadata.generation, reason, "", now),
    )


def failed(budget: PodDisruptionBudget, why: str, now: datetime) -> PodDisruptionBudgetStatus:
    """What is known stays, and no pod may be evicted."""
    observed = budget.status.observed_generation
    conditions = _conditions(budget, False, observed, "SyncFailed", why, now)
    return replace(budget.status, disruptions_allowed=0, conditions=conditions)


def _conditions(
    budget: PodDisruptionBudget, allowed: bool, observed: int, reason: str, message: str, now: datetime
) -> list[Condition]:
    before = next((c for c in budget.status.conditions if c.type == "DisruptionAllowed"), None)
    value = "True" if allowed else "False"
    unchanged = before is not None and before.status == value
    condition = Condition(
        type="DisruptionAllowed",
        status=value,
        observed_generation=observed,
        last_transition_time=before.last_transition_time if before and unchanged else rfc3339(now),
        reason=reason,
        message=message,
    )
    return [*(c for c in budget.status.conditions if c.type != condition.type), condition]


def desired_healthy(spec: PodDisruptionBudgetSpec, expected: int) -> int:
    if spec.max_unavailable is not None:
        return max(expected - _amount(spec.max_unavailable, expected), 0)
    return _amount(spec.min_available, expected) if spec.min_available is not None else 0


def _amount(value: int | str, of: int) -> int:
    """A number, or a percentage of `of` rounded up."""
    return value if isinstance(value, int) else -(-int(value.removesuffix("%")) * of // 100)
