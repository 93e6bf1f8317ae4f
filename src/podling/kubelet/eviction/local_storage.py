"""Pods that have written more to the node's disk than they may: more than a volume, the pod or one of its
containers is allowed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.kubelet.eviction.messages import (
    container_is_full,
    container_usage,
    pod_is_full,
    volume_is_full,
)
from podling.kubelet.eviction.thresholds import STORAGE
from podling.kubelet.stats.summary import PodStats
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import pod_limits


def is_limited(pod: Pod) -> bool:
    """Whether there is anything to be measured at all."""
    return bool(pod_limits(pod).get(STORAGE)) or any(True for _ in _volume_limits(pod))


def excess(pod: Pod, stats: PodStats) -> str:
    """Why the pod has to go; "" when it need not."""
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
