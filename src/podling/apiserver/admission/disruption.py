"""Evictions: each takes one of the disruptions that the PodDisruptionBudget of its pod still allows.

It is taken by a write of the budget's status, so two evictions cannot take the same one. The disruption
controller gives it back once the pod is gone, or has not gone in time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.admission.chain import Attributes, Objects
from podling.model.errors import Cause, StatusError, forbidden
from podling.model.rules.status import is_condition_true, is_terminal
from podling.model.selectors import from_label_selector
from podling.model.time import Clock, rfc3339
from podling.model.types.pod import Pod
from podling.model.types.policy import PodDisruptionBudget

CANNOT = "Cannot evict pod as it would violate the pod's disruption budget."
CAUSE = "DisruptionBudget"
STALE_SECONDS = 10
MOST_UNCONFIRMED = 2000


class DisruptionBudgets:
    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        evicts = (attributes.resource.plural, attributes.subresource) == ("pods", "eviction")
        if not evicts or _is_free_to_go(old):
            return
        budget = self._budget(old)
        if budget is None or _unhealthy_may_go(budget, old):
            return
        now = self._clock.now()
        await self._objects.change(
            PodDisruptionBudget,
            budget.metadata.namespace,
            budget.metadata.name,
            lambda standing: take(standing, old.metadata.name, now),
            dry_run=attributes.dry_run,
        )

    def _budget(self, pod: Pod) -> PodDisruptionBudget | None:
        """The budget that selects the pod. Raises StatusError 500 if there are two, as in Kubernetes."""
        found = [
            budget
            for budget in self._objects.all(PodDisruptionBudget, pod.metadata.namespace)
            if from_label_selector(budget.spec.selector).matches(pod.metadata.labels)
        ]
        if len(found) > 1:
            why = (
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                "support."
            )
            raise StatusError(500, "InternalError", why)
        return found[0] if found else None


def _is_free_to_go(pod: Pod) -> bool:
    """Whether the pod is evicted without asking a budget: it is pending, has ended, or is being deleted
    already."""
    return bool(pod.metadata.deletion_timestamp) or is_terminal(pod) or pod.status.phase == "Pending"


def _unhealthy_may_go(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a pod that is not ready may be evicted without taking a disruption
    (`unhealthyPodEvictionPolicy`)."""
    if is_condition_true(pod.status.conditions, "Ready"):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    return status.current_healthy >= status.desired_healthy > 0


def take(budget: PodDisruptionBudget, pod: str, now: datetime) -> None:
    """Take one disruption for `pod`. Raises StatusError 429 when there is none to take."""
    name, status = budget.metadata.name, budget.status
    if status.observed_generation < budget.metadata.generation:
        raise _refused(f"The disruption budget {name} is still being processed by the server.", STALE_SECONDS)
    if len(status.disrupted_pods) > MOST_UNCONFIRMED:
        raise forbidden(
            "poddisruptionbudgets",
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "policy",
        )
    if status.disruptions_allowed <= 0:
        raise _refused(
            f"The disruption budget {name} needs {status.desired_healthy} healthy pods and has "
            f"{status.current_healthy} currently"
        )
    status.disruptions_allowed -= 1
    status.disrupted_pods = {**status.disrupted_pods, pod: rfc3339(now)}


def _refused(why: str, seconds: int = 0) -> StatusError:
    cause = Cause(CAUSE, why)
    return StatusError(429, "TooManyRequests", CANNOT, causes=(cause,), retry_after_seconds=seconds)
