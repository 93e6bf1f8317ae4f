"""Whether the node takes a pod: what only the node can know at the moment the pod arrives. Pure.

The scheduler asked the same questions, but of what it knew then; and a pod may name its node itself. A pod
that is not taken ends as Failed with Kubernetes' own reason: OutOfcpu, OutOfpods, NodeAffinity, NodePorts ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from podling.model.container import ResourceList
from podling.model.host_ports import ports_collide
from podling.model.node import Node
from podling.model.node_affinity import selects
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import pod_requests
from podling.model.taints import NO_EXECUTE, tolerates

PODS = "pods"
OS_LABEL = "kubernetes.io/os"
CONFIG_SOURCE, API_SOURCE = "kubernetes.io/config.source", "api"
MIRROR = "kubernetes.io/config.mirror"
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
_ZERO = Quantity("0")
_OF_KUBERNETES = (PODS, "cpu", "memory", "ephemeral-storage")
_NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
_NOT_TOLERATED = "node(s) had taints that the pod didn't tolerate"
_NOT_THIS_NODE = "node(s) didn't match the requested node name"
_PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"


Amounts = Mapping[str, int]
"""Resource → how much, cpu in thousandths."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod is not taken. `by_labels`: by what stands on the node's object, which may be newer than
    known here."""

    reason: str
    message: str
    by_labels: bool = False


class Shortage(msgspec.Struct, frozen=True):
    """Of a resource there is less left than the pod asks for; cpu in thousandths."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        return self.requested - (self.capacity - self.used)

    @property
    def refusal(self) -> Refusal:
        message = (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )
        return Refusal(f"OutOf{self.resource}", message)


def unfit(pod: Pod) -> Refusal | None:
    """What no room on the node would help against."""
    if pod.metadata.labels.get(OS_LABEL, "linux") != "linux":
        message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Refusal("PodOSSelectorNodeLabelDoesNotMatch", message)
    if pod.spec.os is not None and pod.spec.os.name != "linux":
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def misplaced(pod: Pod, node: Node, others: Iterable[Pod], *, again: bool) -> Iterator[Refusal]:
    """`again`: the pod was taken before, and what has changed on the node's object since does not end it."""
    if not again and not selects(pod, node):
        yield _predicate("NodeAffinity", _NOT_SELECTED, by_labels=True)
    if pod.spec.node_name != node.metadata.name:
        yield _predicate("NodeName", _NOT_THIS_NODE)
    if ports_collide(pod, others):
        yield _predicate("NodePorts", _PORTS_TAKEN)
    if not again and not is_static(pod) and _repelled(pod, node):
        yield _predicate("TaintToleration", _NOT_TOLERATED, by_labels=True)


def shortages(wanted: Amounts, used: Amounts, allocatable: ResourceList) -> Iterator[Shortage]:
    """Extended resources the node does not have are other nodes', or the cluster's, business."""
    for resource in sorted(wanted, key=_order):
        if not wanted[resource] or ("/" in resource and resource not in allocatable):
            continue
        capacity = amount(resource, allocatable.get(resource, _ZERO))
        found = Shortage(resource, wanted[resource], used.get(resource, 0), capacity)
        if found.missing > 0:
            yield found


def amounts(pod: Pod) -> Amounts:
    """What a pod takes of the node, itself included."""
    return {PODS: 1, **amounts_of(pod_requests(pod))}


def amounts_of(resources: ResourceList) -> Amounts:
    return {name: amount(name, quantity) for name, quantity in resources.items()}


def amount(resource: str, quantity: Quantity) -> int:
    """In the unit Kubernetes counts it in."""
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def is_static(pod: Pod) -> bool:
    """It came from a file of the node's, not from the API."""
    return pod.metadata.annotations.get(CONFIG_SOURCE, API_SOURCE) != API_SOURCE


def is_critical(pod: Pod) -> bool:
    important = (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY
    return is_static(pod) or MIRROR in pod.metadata.annotations or important


def _order(resource: str) -> tuple[int, str]:
    known = resource in _OF_KUBERNETES
    return (_OF_KUBERNETES.index(resource) if known else len(_OF_KUBERNETES)), resource


def _repelled(pod: Pod, node: Node) -> bool:
    return any(
        taint.effect == NO_EXECUTE and not any(tolerates(t, taint) for t in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def _predicate(name: str, why: str, *, by_labels: bool = False) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}", by_labels)
