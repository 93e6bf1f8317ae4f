"""What an evicted pod is told, in Kubernetes' words. Pure."""

from __future__ import annotations

from podling.kubelet.eviction.thresholds import RESOURCES, STORAGE, Reading, Threshold
from podling.kubelet.stats.summary import ContainerStats, PodStats
from podling.model.pod import Pod
from podling.model.quantity import Quantity

REASON = "Evicted"
_ZERO = Quantity("0")


def node_is_low(threshold: Threshold, reading: Reading | None, pod: Pod, stats: PodStats) -> str:
    """On which resource, by how much, and what the pod's containers have to do with it."""
    resource = RESOURCES[threshold.signal]
    text = f"The node was low on resource: {resource}. "
    if reading is not None:
        least, left = threshold.amount.of(reading.capacity), reading.available
        text += f"Threshold quantity: {_shown(least, resource)}, available: {_shown(left, resource)}. "
    return text + "".join(_blame(resource, pod, container) for container in stats.containers)


def _blame(resource: str, pod: Pod, stats: ContainerStats) -> str:
    container = next((c for c in pod.spec.containers if c.name == stats.name), None)
    used = container_usage(resource, stats)
    if container is None or used is None:
        return ""
    request = container.resources.requests.get(resource, _ZERO)
    if used <= request.value():
        return ""
    return (
        f"Container {container.name} was using {_shown(used, resource)}, request is {request}, "
        f"has larger consumption of {resource}. "
    )


def container_usage(resource: str, stats: ContainerStats) -> int | None:
    """Bytes; of the disk, what is in the writable layer and the logs."""
    if resource == "memory":
        return stats.memory.working_set_bytes if stats.memory else None
    if resource == STORAGE and stats.rootfs is not None and stats.logs is not None:
        return (stats.rootfs.used_bytes or 0) + (stats.logs.used_bytes or 0)
    return None


def _shown(amount: int, resource: str) -> str:
    return str(Quantity.of_bytes(amount) if resource in ("memory", STORAGE) else Quantity(amount))


def volume_is_full(name: str, limit: Quantity) -> str:
    return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '


def pod_is_full(limit: Quantity) -> str:
    return f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "


def container_is_full(name: str, limit: Quantity) -> str:
    return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
