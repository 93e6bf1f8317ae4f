"""Priority: a pod's number is that of its class, never one of its own choosing.

Of classes only the two built-in ones are known so far.
"""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission.plugin import Attributes
from podling.model.pod import Pod

BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
DEFAULT_PRIORITY = 0
PREEMPTION_POLICY = "PreemptLowerPriority"


class Priority:
    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("pods", "CREATE"):
            _set(attributes, new)
        elif attributes.is_for("pods", "UPDATE"):
            _keep(new, old)


def _set(attributes: Attributes, pod: Pod) -> None:
    spec, name, policy = pod.spec, pod.spec.priority_class_name, pod.spec.preemption_policy
    if name and name not in BUILT_IN:
        raise attributes.forbidden(f"no PriorityClass with name {name} was found")
    priority = BUILT_IN.get(name, DEFAULT_PRIORITY)
    if spec.priority not in (None, priority):
        raise attributes.forbidden(
            f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
    if policy not in (None, PREEMPTION_POLICY):
        raise attributes.forbidden(
            f"the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; "
            f"priority admission controller computed {PREEMPTION_POLICY} from the given PriorityClass name"
        )
    spec.priority, spec.preemption_policy = priority, PREEMPTION_POLICY


def _keep(new: Pod, old: Pod) -> None:
    """An update may leave out what admission added."""
    if new.spec.priority is None:
        new.spec.priority = old.spec.priority
    if new.spec.preemption_policy is None:
        new.spec.preemption_policy = old.spec.preemption_policy
