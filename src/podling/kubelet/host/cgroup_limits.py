"""The limits of a cgroup: of one pod, of a QoS class, and of all pods together. Pure.

A pod's cgroup has the pod's effective resources (R-INIT-9). Everything in the pod runs below it, ephemeral
containers included, so no container can take more than the pod asked for (R-EPH-12).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from podling.model.quantity import Quantity
from podling.model.rules.resources import (
    BEST_EFFORT,
    BURSTABLE,
    GUARANTEED,
    pod_limits,
    pod_requests,
    qos_class,
)
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import Pod

CPU_PERIOD = 100_000
MINIMUM_QUOTA = 1_000
MINIMUM_SHARES = 2
MAXIMUM_SHARES = 262_144
HUGE_PAGES = "hugepages-"
_ZERO = Quantity("0")


class CgroupLimits(msgspec.Struct, frozen=True):
    """The limits of one cgroup; None is no limit."""

    cpu_shares: int = MINIMUM_SHARES
    cpu_quota: int | None = None
    """Microseconds in each CPU_PERIOD."""
    memory: int | None = None
    """Bytes."""
    pids: int | None = None
    """A number of tasks."""
    huge_pages: Mapping[int, int] = msgspec.field(default_factory=dict)
    """Page size → bytes in pages of this size; a size that is absent is not limited."""


def limits_of_pod(pod: Pod) -> CgroupLimits:
    quality = qos_class(pod)
    requests, limits = pod_requests(pod), pod_limits(pod)
    memory, cpu = _bound(pod, quality, "memory"), _bound(pod, quality, "cpu")
    return CgroupLimits(
        cpu_shares=cpu_shares(requests.get("cpu", _ZERO).milli_value()),
        cpu_quota=cpu_quota(limits["cpu"].milli_value()) if cpu else None,
        memory=limits["memory"].value() if memory else None,
        huge_pages=huge_pages(requests),
    )


def on_node(limits: CgroupLimits, pids: int | None, page_sizes: Iterable[int]) -> CgroupLimits:
    """A pod's limits with those of the node: podPidsLimit, and 0 for the node's huge page sizes that the pod
    does not request."""
    return replace(limits, pids=pids, huge_pages=dict.fromkeys(page_sizes, 0) | dict(limits.huge_pages))


def limits_of_node(capacity: Mapping[str, Quantity], reserved: Mapping[str, Quantity]) -> CgroupLimits:
    """Of all pods together: capacity less the reserved resources. The eviction thresholds are not subtracted,
    else the OOM killer would come before the kubelet can evict."""
    left = {name: amount - reserved.get(name, _ZERO) for name, amount in capacity.items()}
    return CgroupLimits(
        cpu_shares=cpu_shares(left["cpu"].milli_value()),
        memory=max(left["memory"].value(), 0),
        huge_pages=huge_pages(left),
    )


def limits_of_classes(burstable_milli: int) -> dict[str, CgroupLimits]:
    """By QoS class, for the two that have a cgroup of their own. Burstable has the shares of all its pods'
    requests, BestEffort the minimum."""
    return {BURSTABLE: CgroupLimits(cpu_shares(burstable_milli)), BEST_EFFORT: CgroupLimits()}


def cpu_shares(milli: int) -> int:
    return min(max(milli * 1024 // 1000, MINIMUM_SHARES), MAXIMUM_SHARES)


def cpu_quota(milli: int) -> int:
    """Microseconds in each CPU_PERIOD for a limit in milli-CPUs; 0 means no limit."""
    return max(milli * CPU_PERIOD // 1000, MINIMUM_QUOTA) if milli else 0


def huge_pages(amounts: Mapping[str, Quantity]) -> dict[int, int]:
    """Page size → bytes, from resources named `hugepages-<size>`."""
    return {
        Quantity(name.removeprefix(HUGE_PAGES)).value(): amount.value()
        for name, amount in amounts.items()
        if name.startswith(HUGE_PAGES)
    }


def _bound(pod: Pod, quality: str, resource: str) -> bool:
    """Whether the pod's cgroup gets a limit. Without a limit of the pod's own, it gets none if any container
    has none."""
    if quality != BURSTABLE:
        return quality == GUARANTEED
    if pod.spec.resources is not None and pod.spec.resources.limits.get(resource):
        return True
    return all(resources.limits.get(resource) for resources in _askers(pod))


def _askers(pod: Pod) -> Iterator[ResourceRequirements]:
    return (container.resources for container in (*pod.spec.init_containers, *pod.spec.containers))
