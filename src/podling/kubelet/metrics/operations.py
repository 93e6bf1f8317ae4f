"""A runtime whose calls are counted and timed: kubelet_runtime_operations_*."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, cast

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.metrics.histogram import Histogram

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
