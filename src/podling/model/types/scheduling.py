"""scheduling.k8s.io/v1: PriorityClass."""

from typing import ClassVar

from podling.model.codec.fields import Int32, always
from podling.model.types.meta import KubeObject

SYSTEM_CLASSES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if "
        "necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}
"""The classes every cluster has: name → (value, description)."""


class PriorityClass(KubeObject):
    KIND: ClassVar[str] = "PriorityClass"
    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1"

    value: Int32 = always(int)
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
