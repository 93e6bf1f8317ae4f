"""What a pod requests and may use, and its QoS class (R-INIT-9).

Scheduler, node admission, quota and the pod's cgroup use `pod_requests` and `pod_limits`. The effective
request is the larger of the most demanding init step and of the running state. Init containers run one at a
time, beside the sidecars started before them.

Volume containers (R-VOL-1, gate `ContainerVolumes`) each initialize one volume. They start together before
all init containers, and each must succeed. In all else they are init containers: a node sees them at the head
of that list, and their statuses are among those of init containers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from podling.model.quantity import Quantity
from podling.model.types.container import Container
from podling.model.types.pod import Pod, PodSpec

Amounts = Mapping[str, Quantity]
"""Resource name → amount. A resource absent from requests is not requested; absent from limits is unlimited.
"""
BEST_EFFORT, BURSTABLE, GUARANTEED = "BestEffort", "Burstable", "Guaranteed"
HUGE_PAGES = "hugepages-"
_QOS_RESOURCES = ("cpu", "memory")


def volume_containers(spec: PodSpec) -> list[Container]:
    return [volume.container for volume in spec.volumes if volume.container is not None]


def volume_container_names(spec: PodSpec) -> frozenset[str]:
    return frozenset(container.name for container in volume_containers(spec))


def with_volume_containers(pod: Pod) -> Pod:
    """The pod as a node runs it: its volume containers are at the head of its init containers. The same
    object when it has none."""
    first = volume_containers(pod.spec)
    if not first:
        return pod
    known = {container.name for container in pod.spec.init_containers}
    heads = [container for container in first if container.name not in known]
    spec = msgspec.structs.replace(pod.spec, init_containers=[*heads, *pod.spec.init_containers])
    return msgspec.structs.replace(pod, spec=spec)


def is_sidecar(container: Container) -> bool:
    """Whether an init container is restartable (`restartPolicy: Always`) and so keeps running beside the app
    containers."""
    return container.restart_policy == "Always"


def pod_requests(pod: Pod) -> dict[str, Quantity]:
    """Effective requests of the pod, `spec.resources` and overhead included."""
    requests = container_requests(pod.spec)
    requests.update(_pod_level(pod.spec, "requests"))
    return _sum(requests, pod.spec.overhead)


def pod_limits(pod: Pod) -> dict[str, Quantity]:
    """Effective limits of the pod. Overhead is added only to limits that exist."""
    limits = container_limits(pod.spec)
    limits.update(_pod_level(pod.spec, "limits"))
    return _sum(limits, {name: q for name, q in pod.spec.overhead.items() if limits.get(name)})


def container_requests(spec: PodSpec) -> dict[str, Quantity]:
    """What the containers request together, without `spec.resources` and overhead."""
    return _needed(spec, lambda container: container.resources.requests)


def container_limits(spec: PodSpec) -> dict[str, Quantity]:
    """The limits of the containers together, without `spec.resources` and overhead."""
    return _needed(spec, lambda container: container.resources.limits)


def qos_class(pod: Pod) -> str:
    """By the requests and limits of cpu and memory. Guaranteed: every container, or the pod, limits both and
    requests as much."""
    spec = pod.spec
    containers = (*volume_containers(spec), *spec.init_containers, *spec.containers)
    # By name: a node has the volume containers among its init containers.
    askers = list({container.name: container.resources for container in containers}.values())
    if spec.resources is not None:
        askers = [spec.resources]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    complete = True
    for resources in askers:
        limited = _counted(resources.limits)
        requests, limits = _sum(requests, _counted(resources.requests)), _sum(limits, limited)
        complete = complete and len(limited) == len(_QOS_RESOURCES)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if complete and requests == limits else BURSTABLE


def is_supported_at_pod_level(resource: str) -> bool:
    return resource in _QOS_RESOURCES or resource.startswith(HUGE_PAGES)


def _needed(spec: PodSpec, amounts_of: Callable[[Container], Amounts]) -> dict[str, Quantity]:
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in volume_containers(spec):
        peak = _sum(peak, amounts_of(container))
    for container in spec.init_containers:
        step = _sum(sidecars, amounts_of(container))
        if is_sidecar(container):
            sidecars = step
        peak = _max(peak, step)
    running = sidecars
    for container in spec.containers:
        running = _sum(running, amounts_of(container))
    return _max(running, peak)


def _pod_level(spec: PodSpec, side: str) -> dict[str, Quantity]:
    """The pod's own `spec.resources`, which speak for all its containers together."""
    if spec.resources is None:
        return {}
    amounts: Amounts = spec.resources.requests if side == "requests" else spec.resources.limits
    return {name: amount for name, amount in amounts.items() if is_supported_at_pod_level(name)}


def _sum(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    total = dict(one)
    for name, amount in other.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def _max(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    larger = dict(one)
    for name, amount in other.items():
        larger[name] = max(larger[name], amount) if name in larger else amount
    return larger


def _counted(amounts: Amounts) -> Amounts:
    return {name: amounts[name] for name in _QOS_RESOURCES if name in amounts and amounts[name].nanos > 0}
