"""Which pod is evicted first, which pods exceed their own local storage limits, and the messages. Pure.

Pods that use more than they request are evicted before those that do not; then lower priority first; then the
largest use above the request. Process ids cannot be requested, so there only priority and number decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from podling.kubelet.eviction.thresholds import INODES, RESOURCES, STORAGE, Reading, Threshold
from podling.kubelet.plan.admission import is_critical
from podling.kubelet.stats.summary import ContainerStats, PodStats
from podling.model.quantity import Quantity
from podling.model.rules.resources import pod_limits, pod_requests
from podling.model.types.pod import Pod

_ZERO = Quantity("0")


def node_is_low(threshold: Threshold, reading: Reading | None, pod: Pod, stats: PodStats) -> str:
    """The message of a pod that is evicted for a threshold, in Kubernetes' words."""
    resource = RESOURCES[threshold.signal]
    text = f"The node was low on resource: {resource}. "
    if reading is not None:
        least, left = threshold.amount.of(reading.capacity), reading.available
        text += f"Threshold quantity: {_shown(least, resource)}, available: {_shown(left, resource)}. "
    requests = {container.name: container.resources.requests for container in pod.spec.containers}
    for container in stats.containers:
        used = container_usage(resource, container)
        request = requests.get(container.name, {}).get(resource, _ZERO)
        if used is not None and container.name in requests and used > request.value():
            text += (
                f"Container {container.name} was using {_shown(used, resource)}, request is {request}, "
                f"has larger consumption of {resource}. "
            )
    return text


def container_usage(resource: str, stats: ContainerStats) -> int | None:
    """Bytes of memory, or of the writable layer and logs; None if unknown."""
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


class Candidate(msgspec.Struct, frozen=True):
    """A pod that may be evicted, and what it uses."""

    pod: Pod
    stats: PodStats


def ranked(resource: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """In the order of eviction, without critical pods."""

    def order(candidate: Candidate) -> tuple[bool, int, int]:
        used = usage(resource, candidate.stats)
        above = used - pod_requests(candidate.pod).get(resource, _ZERO).value()
        within = above <= 0 and resource != "pids"
        return within, candidate.pod.spec.priority or 0, -above

    return sorted((one for one in candidates if not is_critical(one.pod)), key=order)


def usage(resource: str, stats: PodStats) -> int:
    """The pod's use of a resource in bytes, inodes or processes; 0 if unknown."""
    if resource == "memory":
        return (stats.memory.working_set_bytes or 0) if stats.memory else 0
    if resource == STORAGE:
        return (stats.ephemeral_storage.used_bytes or 0) if stats.ephemeral_storage else 0
    if resource == INODES:
        return (stats.ephemeral_storage.inodes_used or 0) if stats.ephemeral_storage else 0
    return (stats.process_stats.process_count or 0) if stats.process_stats else 0


def is_limited(pod: Pod) -> bool:
    """Whether the pod has limits of local storage, so that it must be measured."""
    return bool(pod_limits(pod).get(STORAGE)) or any(True for _ in _volume_limits(pod))


def excess(pod: Pod, stats: PodStats) -> str:
    """The eviction message of a pod that exceeds its local storage limits; "" if it does not."""
    used = {volume.name: volume.used_bytes or 0 for volume in stats.volume}
    for name, limit in _volume_limits(pod):
        if used.get(name, 0) > limit.value():
            return volume_is_full(name, limit)
    whole = pod_limits(pod).get(STORAGE)
    if whole and stats.ephemeral_storage and (stats.ephemeral_storage.used_bytes or 0) > whole.value():
        return pod_is_full(whole)
    limits = {c.name: c.resources.limits.get(STORAGE) for c in pod.spec.containers}
    for container in stats.containers:
        own = limits.get(container.name)
        if own and (container_usage(STORAGE, container) or 0) > own.value():
            return container_is_full(container.name, own)
    return ""


def _volume_limits(pod: Pod) -> Iterator[tuple[str, Quantity]]:
    for volume in pod.spec.volumes:
        if volume.empty_dir is not None and volume.empty_dir.size_limit:
            yield volume.name, volume.empty_dir.size_limit
