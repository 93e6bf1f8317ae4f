"""The node's pressure conditions: the eviction manager sets them, pod admission reads them."""

from __future__ import annotations

from collections.abc import Set

from podling.kubelet.plan.admission import Refusal, is_critical
from podling.model.rules.placement import tolerates
from podling.model.rules.resources import BEST_EFFORT, qos_class
from podling.model.types.node import Taint
from podling.model.types.pod import Pod

EVICTED = "Evicted"
MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE = "MemoryPressure", "DiskPressure", "PIDPressure"
MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


class NodePressure:
    def __init__(self) -> None:
        self.conditions: Set[str] = frozenset()
        """The node conditions that are True, such as `MemoryPressure`. The eviction manager sets them."""

    def refusal(self, pod: Pod) -> Refusal | None:
        """A node under pressure takes critical pods only; if it is memory alone, all but those that ask for
        none."""
        conditions = self.conditions
        if not conditions or is_critical(pod):
            return None
        if conditions == {MEMORY_PRESSURE} and not _is_first_to_go(pod):
            return None
        return Refusal(EVICTED, f"The node had condition: [{' '.join(sorted(conditions))}]. ")


def _is_first_to_go(pod: Pod) -> bool:
    """When memory is short."""
    tolerated = any(tolerates(toleration, MEMORY_TAINT) for toleration in pod.spec.tolerations)
    return qos_class(pod) == BEST_EFFORT and not tolerated
