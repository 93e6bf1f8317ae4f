"""What the kubelet counts: containers (R-EPH-9), pods, and calls to the runtime.

Counters are plain numbers while the kubelet runs. `exposition.py` gives them their metric names at a scrape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
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


class OperationCounts:
    """By operation."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.seconds: dict[str, Histogram] = {}

    def took(self, operation: str, seconds: float) -> None:
        self.seconds.setdefault(operation, Histogram(BOUNDS)).observe(seconds)


def counted(runtime: Runtime, counts: OperationCounts) -> Runtime:
    """The same runtime; `counts` are kept of what it is asked from now on."""
    return cast(Runtime, _Counted(runtime, counts))


class _Counted:
    """Every promise of the runtime is kept by the runtime itself, so none is spelled out here."""

    def __init__(self, runtime: Runtime, counts: OperationCounts) -> None:
        self._runtime = runtime
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        operation = OPERATIONS.get(name)
        if operation is None:
            return getattr(self._runtime, name)
        call = _timed(self._runtime, name, operation, self._counts)
        # Python asks here but once for what has been set.
        setattr(self, name, call)
        return call


def _timed(
    runtime: Runtime, name: str, operation: str, counts: OperationCounts
) -> Callable[..., Awaitable[Any]]:
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

    return timed
