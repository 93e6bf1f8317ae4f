"""In-place resize of a pod: whether the node can give what the spec asks for, and what the containers need
then. Pure.

    spec ──(judge)──▶ allocated ──(ResizePod)──▶ actuated
      │                                   │
      └ PodResizePending while they       └ PodResizeInProgress while they differ
        differ: Deferred, Infeasible

Only CPU and memory can be resized, of the pod as a whole and of all containers but the ephemeral ones. A
container that does not run needs nothing. One that must restart for its resize is stopped by `containers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec
from msgspec.structs import replace

from podling.kubelet.host.cgroups import CgroupLimits, limits_of_pod
from podling.kubelet.plan.admission import Amounts, Shortage, amounts, amounts_of, is_static
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod
from podling.model.quantity import Quantity
from podling.model.rules.resources import GUARANTEED, pod_limits, pod_requests, qos_class
from podling.model.types.container import (
    Container,
    EphemeralContainerCommon,
    ResourceList,
    ResourceRequirements,
)
from podling.model.types.pod import Pod

RESIZABLE = ("cpu", "memory")
DEFERRED, INFEASIBLE = "Deferred", "Infeasible"
RESTART_CONTAINER = "RestartContainer"
_ZERO = Quantity("0")


class Allocation(msgspec.Struct, frozen=True):
    """The allocated resources of a pod."""

    containers: Mapping[str, ResourceRequirements]
    """By container name."""
    whole: ResourceRequirements | None = None
    """Those of `spec.resources`."""


class ResizeAnswer(msgspec.Struct, frozen=True):
    """The node's answer to a resize. `reason` is Deferred or Infeasible, "" if it is accepted."""

    pod: Pod
    reason: str = ""
    message: str = ""

    @property
    def accepted(self) -> bool:
        return not self.reason

    @property
    def may_change(self) -> bool:
        """Deferred: it may be accepted when other pods release resources."""
        return self.reason == DEFERRED


def judge(pod: Pod, allocatable: ResourceList, short_of: Sequence[Shortage]) -> ResizeAnswer:
    """Whether the pod can have the resources it requests. `short_of` is what is missing beside all others."""
    if is_static(pod):
        return ResizeAnswer(pod, INFEASIBLE, "In-place resize of static-pods is not supported")
    wanted, whole = amounts(pod), amounts_of(allocatable)
    for resource in reversed(RESIZABLE):
        requested, capacity = wanted.get(resource, 0), whole.get(resource, 0)
        if requested > capacity:
            figures = f"{resource}, requested: {requested}, capacity: {capacity}"
            return ResizeAnswer(pod, INFEASIBLE, f"Node didn't have enough capacity: {figures}")
    if short_of:
        return ResizeAnswer(pod, DEFERRED, short_of[0].refusal.message)
    return ResizeAnswer(pod)


def first_to_be_resized(pod: Pod, wanted: Amounts, has: Amounts) -> tuple[bool, int, bool]:
    """A sort key: resizes that release resources first, then higher priority, then Guaranteed."""
    increases = any(wanted.get(name, 0) > has.get(name, 0) for name in RESIZABLE)
    return increases, -(pod.spec.priority or 0), qos_class(pod) != GUARANTEED


def allocation_of(pod: Pod) -> Allocation:
    """What the pod's spec asks for."""
    return Allocation(
        {container.name: container.resources for container in _resizable(pod)}, pod.spec.resources
    )


def _resizable(pod: Pod) -> Iterator[Container]:
    return chain(pod.spec.init_containers, pod.spec.containers)


def with_allocation(pod: Pod, allocation: Allocation) -> Pod:
    """The pod with its allocated resources in place of those in its spec; the same object if they are
    equal."""

    def given(container: Container) -> Container:
        resources = allocation.containers.get(container.name, container.resources)
        return replace(container, resources=resources)

    if allocation_of(pod) == allocation:
        return pod
    spec = replace(
        pod.spec,
        containers=[given(c) for c in pod.spec.containers],
        init_containers=[given(c) for c in pod.spec.init_containers],
        resources=allocation.whole,
    )
    return replace(pod, spec=spec)


def unactuated(pod: Pod, observed: ObservedPod) -> Iterator[tuple[Container, ObservedContainer]]:
    """Running containers whose actuated resources differ from the allocated ones."""
    for container in _resizable(pod):
        running = observed.current.get(container.name)
        if running is not None and running.running and _changes(pod, container, running):
            yield container, running


def is_in_progress(pod: Pod, observed: ObservedPod) -> bool:
    """Whether a resize was accepted and is not all done."""
    return _is_unsettled(observed) or any(unactuated(pod, observed))


def whole(pod: Pod) -> ResourceRequirements:
    """The pod's resources as a whole: `spec.resources`, else the sums of its containers."""
    claims = pod.spec.resources.claims if pod.spec.resources else []
    return ResourceRequirements(requests=pod_requests(pod), limits=pod_limits(pod), claims=claims)


def shown_resources(
    pod: Pod, observed: ObservedPod, allocated: ResourceRequirements, *, running: bool
) -> ResourceRequirements:
    """The pod's resources as a whole, as its status shows them: the actuated ones; `allocated` are its
    `whole`. Those of a `running` pod are only what can be resized, and what else `spec.resources` says."""
    had = observed.actuated if _is_unsettled(observed) else None
    has = had or allocated
    if not running:
        return has
    said = pod.spec.resources or ResourceRequirements()

    def picked(amounts: ResourceList, said: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name in RESIZABLE or name in said}

    return ResourceRequirements(
        requests=picked(has.requests, said.requests),
        limits=picked(has.limits, said.limits),
        claims=said.claims,
    )


def _is_unsettled(observed: ObservedPod) -> bool:
    """Whether the pod's cgroup is still to be written. A resize of `spec.resources` alone changes no
    container."""
    return observed.resized_generation > 0 and not observed.limits_settled


def restart_required(pod: Pod, container: Container, running: ObservedContainer) -> bool:
    """Whether the container's resizePolicy demands a restart for what changes."""
    restarting = {p.resource_name for p in container.resize_policy if p.restart_policy == RESTART_CONTAINER}
    return bool(restarting & _changes(pod, container, running))


def resources_to_actuate(pod: Pod, container: EphemeralContainerCommon) -> ResourceRequirements:
    """What the runtime is to be given for a container: its own resources, and the pod's limits where it has
    none."""
    if pod.spec.resources is None:
        return container.resources
    of_pod = {name: q for name, q in pod.spec.resources.limits.items() if name in RESIZABLE}
    limits = {**of_pod, **container.resources.limits}
    return replace(container.resources, limits=limits)


def _changes(pod: Pod, container: Container, running: ObservedContainer) -> set[str]:
    wanted, has = resources_to_actuate(pod, container), running.resources
    return {
        name
        for name in RESIZABLE
        if wanted.requests.get(name, _ZERO) != has.requests.get(name, _ZERO)
        or wanted.limits.get(name, _ZERO) != has.limits.get(name, _ZERO)
    }


def actuated(container: Container, running: ObservedContainer) -> ResourceRequirements:
    """The resources that a running container has: CPU and memory as the runtime was last given, the others as
    allocated."""

    def has(given: ResourceList, told: ResourceList) -> ResourceList:
        kept = {name: amount for name, amount in given.items() if name not in RESIZABLE}
        return kept | {name: told[name] for name in RESIZABLE if name in told and name in given}

    return ResourceRequirements(
        requests=has(container.resources.requests, running.resources.requests),
        limits=has(container.resources.limits, running.resources.limits),
        claims=container.resources.claims,
    )


def limits_meanwhile(pod: Pod, observed: ObservedPod) -> CgroupLimits:
    """The limits of the pod's cgroup during a resize: enough for old and new resources of its containers."""
    after = limits_of_pod(pod)
    has = {c.name: actuated(c, running) for c, running in unactuated(pod, observed)}
    if not has:
        return after
    before = Allocation({**allocation_of(pod).containers, **has}, pod.spec.resources)
    return highest(limits_of_pod(with_allocation(pod, before)), after)


def highest(one: CgroupLimits, other: CgroupLimits) -> CgroupLimits:
    """The higher of each limit, None (no limit) being the highest."""
    return replace(
        other,
        cpu_shares=max(one.cpu_shares, other.cpu_shares),
        cpu_quota=_more(one.cpu_quota, other.cpu_quota),
        memory=_more(one.memory, other.memory),
    )


def _more(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
