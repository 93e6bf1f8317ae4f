"""What the kubelet counts of its pods. Counted in plain numbers as it happens; who serves metrics names
them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from podling.kubelet.metrics.histogram import Histogram

START_BOUNDS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300),
    *(360, 480, 600, 900, 1200, 1800, 2700, 3600),
)


class ProbeLabels(NamedTuple):
    """Whose probe it was. The type is Liveness, Readiness or Startup, the result successful or failed."""

    probe_type: str
    result: str
    container: str
    pod: str
    namespace: str
    pod_uid: str


class PodCounts:
    """`sandboxes` were begun, `sandbox_errors` of them came to nothing. `start_seconds`: from the kubelet
    seeing a pod to the pod running. `evictions` by signal, `images_collected` by reason."""

    def __init__(self) -> None:
        self.sandboxes = 0
        self.sandbox_errors: Counter[str] = Counter()
        self.start_seconds = Histogram(START_BOUNDS)
        self.probes: Counter[ProbeLabels] = Counter()
        self.evictions: Counter[str] = Counter()
        self.images_collected: Counter[str] = Counter()

    def forget(self, pod_uid: str) -> None:
        """The pod is gone, and with it the numbers that are about it alone."""
        for labels in [labels for labels in self.probes if labels.pod_uid == pod_uid]:
            del self.probes[labels]
