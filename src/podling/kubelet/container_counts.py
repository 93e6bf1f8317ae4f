"""What the kubelet counts of the containers it starts (R-EPH-9), under the names of Kubernetes' metrics.
Counted here and nowhere else; whoever serves metrics reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podling.kubelet.container_types import ContainerType
from podling.model.pod import Pod

LABELS = {
    ContainerType.REGULAR: "container",
    ContainerType.INIT: "init_container",
    ContainerType.SIDECAR: "init_container",
    ContainerType.EPHEMERAL: "ephemeral_container",
}
"""The label `container_type`."""


class ContainerCounts:
    """`started`, by container_type, is kubelet_started_containers_total: every attempt. `failed`, by
    container_type and code, is kubelet_started_containers_errors_total: those that came to nothing.
    """

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()

    def start(self, kind: ContainerType) -> None:
        self.started[LABELS[kind]] += 1

    def failure(self, kind: ContainerType, code: str) -> None:
        """`code` is the waiting reason shown for it."""
        self.failed[LABELS[kind], code] += 1


def managed_ephemeral_containers(pods: Iterable[Pod]) -> int:
    """kubelet_managed_ephemeral_containers."""
    return sum(len(pod.spec.ephemeral_containers) for pod in pods)
