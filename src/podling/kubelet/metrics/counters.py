"""What the kubelet counts: containers (R-EPH-9), pods, and calls to the runtime.

Counters are plain numbers while the kubelet runs. `exposition.py` gives them their metric names at a scrape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from time import perf_counter
from typing import Any, NamedTuple, cast

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.pod.containers import ContainerType
from podling.model.types.pod import Pod
from podling.process.histogram import Histogram

LABELS = {
    ContainerType.REGULAR: "container",
    ContainerType.INIT: "init_container",
    ContainerType.SIDECAR: "init_container",
    ContainerType.EPHEMERAL: "ephemeral_container",
}
"""The label `container_type`."""
START_BOUNDS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300),
    *(360, 480, 600, 900, 1200, 1800, 2700, 3600),
)
BOUNDS = tuple(0.005 * 2.5**n for n in range(14))
OPERATIONS = {
    "version": "version",
    "status": "status",
    "run_pod_sandbox": "run_podsandbox",
    "stop_pod_sandbox": "stop_podsandbox",
    "remove_pod_sandbox": "remove_podsandbox",
    "pod_sandbox_status": "podsandbox_status",
    "list_pod_sandbox": "list_podsandbox",
    "create_container": "create_container",
    "start_container": "start_container",
    "stop_container": "stop_container",
    "remove_container": "remove_container",
    "list_containers": "list_containers",
    "container_status": "container_status",
    "update_container_resources": "update_container",
    "reopen_container_log": "reopen_container_log",
    "exec_sync": "exec_sync",
    "exec": "exec",
    "attach": "attach",
    "port_forward": "port_forward",
    "list_container_stats": "list_container_stats",
    "image_status": "image_status",
    "list_images": "list_images",
    "pull_image": "pull_image",
    "remove_image": "remove_image",
    "image_fs_info": "image_fs_info",
}
"""The calls that are counted, and what Kubernetes names them."""


class ContainerCounts:
    """Starts of containers, and failed ones."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        """kubelet_started_containers_total: attempts by container_type."""
        self.failed: Counter[tuple[str, str]] = Counter()
        """kubelet_started_containers_errors_total: failures by container_type and code."""

    def start(self, kind: ContainerType) -> None:
        self.started[LABELS[kind]] += 1

    def failure(self, kind: ContainerType, code: str) -> None:
        """`code` is the waiting reason shown for it."""
        self.failed[LABELS[kind], code] += 1


def managed_ephemeral_containers(pods: Iterable[Pod]) -> int:
    """kubelet_managed_ephemeral_containers."""
    return sum(len(pod.spec.ephemeral_containers) for pod in pods)


class ProbeLabels(NamedTuple):
    """Labels of prober_probe_total. The type is Liveness, Readiness or Startup, the result successful or
    failed."""

    probe_type: str
    result: str
    container: str
    pod: str
    namespace: str
    pod_uid: str


class PodCounts:
    """What is counted of pods."""

    def __init__(self) -> None:
        self.sandboxes = 0
        """Attempts to create one."""
        self.sandbox_errors: Counter[str] = Counter()
        """Failed attempts by reason."""
        self.start_seconds = Histogram(START_BOUNDS)
        """From the kubelet seeing a pod to the phase Running."""
        self.probes: Counter[ProbeLabels] = Counter()
        self.evictions: Counter[str] = Counter()
        """By eviction signal."""
        self.images_collected: Counter[str] = Counter()
        """By reason."""

    def forget(self, pod_uid: str) -> None:
        """Drop the counters of one pod, which is gone."""
        for labels in [labels for labels in self.probes if labels.pod_uid == pod_uid]:
            del self.probes[labels]


class OperationCounts:
    """kubelet_runtime_operations_*: calls, errors and durations by operation_type."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.seconds: dict[str, Histogram] = {}

    def took(self, operation: str, seconds: float) -> None:
        self.seconds.setdefault(operation, Histogram(BOUNDS)).observe(seconds)


def counted(runtime: Runtime, counts: OperationCounts) -> Runtime:
    """The same runtime, whose calls are counted and timed in `counts`."""
    return cast(Runtime, _Counted(runtime, counts))


class _Counted:
    """Passes every attribute on to the runtime, so the methods of the interface are not repeated here."""

    def __init__(self, runtime: Runtime, counts: OperationCounts) -> None:
        self._runtime = runtime
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        runtime, counts = self._runtime, self._counts
        if name not in OPERATIONS:
            return getattr(runtime, name)
        operation = OPERATIONS[name]

        async def timed(*arguments: Any, **named: Any) -> Any:
            counts.calls[operation] += 1
            began = perf_counter()
            try:
                return await getattr(runtime, name)(*arguments, **named)
            except RuntimeFault:
                counts.errors[operation] += 1
                raise
            finally:
                counts.took(operation, perf_counter() - began)

        # Python calls __getattr__ only for missing attributes: each method is wrapped once.
        setattr(self, name, timed)
        return timed
