"""Whether one node by itself can take a pod. Pure.

The filters are in kube-scheduler's order, and the first refusal is the node's. The filters that depend on the
whole cluster come after them: `topology_spread.py` and `pod_affinity.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from podling.model.rules.placement import NO_SCHEDULE, UNSCHEDULABLE, collide, selects
from podling.model.types.node import Taint
from podling.scheduler.info import PODS, NodeInfo, PodInfo
from podling.scheduler.node_match import named_nodes, tolerated, untolerated

NODE_UNSCHEDULABLE = "NodeUnschedulable"
NODE_NAME = "NodeName"
TAINT_TOLERATION = "TaintToleration"
NODE_AFFINITY = "NodeAffinity"
NODE_PORTS = "NodePorts"
NODE_RESOURCES = "NodeResourcesFit"
TOPOLOGY_SPREAD = "PodTopologySpread"
POD_AFFINITY = "InterPodAffinity"
DECLARED_FEATURES = "NodeDeclaredFeatures"
DYNAMIC_RESOURCES = "DynamicResources"
VOLUME_RESTRICTIONS = "VolumeRestrictions"
VOLUME_BINDING = "VolumeBinding"
VOLUME_ZONE = "VolumeZone"
VOLUME_LIMITS = "NodeVolumeLimits"
"""kube-scheduler's names of the plugins."""

_CORDON = Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE)


class Refusal(NamedTuple):
    """Why a node does not take a pod, in Kubernetes' words. `filter` is the plugin's name; `final` says that
    preemption cannot help."""

    filter: str
    reasons: tuple[str, ...]
    final: bool = False


Filter = Callable[[PodInfo, NodeInfo], Refusal | None]


def refuse(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    """Why the node cannot take the pod; None when no filter of the node alone refuses it."""
    for check in FILTERS:
        refusal = check(pod, node)
        if refusal is not None:
            return refusal
    return None


def pinned(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    """A pod whose required affinity names its nodes is not tried on others (NodeAffinity's PreFilter)."""
    named = named_nodes(pod.pod.spec)
    if named is None or node.name in named:
        return None
    return Refusal(NODE_AFFINITY, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), final=True)


def node_unschedulable(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if not node.node.spec.unschedulable or tolerated(_CORDON, pod.pod.spec.tolerations):
        return None
    return Refusal(NODE_UNSCHEDULABLE, ("node(s) were unschedulable",), final=True)


def node_name(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if pod.pod.spec.node_name in ("", node.name):
        return None
    return Refusal(NODE_NAME, ("node(s) didn't match the requested node name",), final=True)


def taints(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if not untolerated(node.node.spec.taints, pod.pod.spec.tolerations):
        return None
    return Refusal(TAINT_TOLERATION, ("node(s) had untolerated taint(s)",), final=True)


def node_affinity(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if selects(pod.pod, node.node):
        return None
    return Refusal(NODE_AFFINITY, ("node(s) didn't match Pod's node affinity/selector",), final=True)


def host_ports(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if not pod.ports or not collide(pod.ports, node.ports.keys()):
        return None
    return Refusal(NODE_PORTS, ("node(s) didn't have free ports for the requested pod ports",))


def resources(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    """NodeResourcesFit. The refusal is final if the node would be too small even when empty."""
    short = tuple(node.shortages(pod))
    if not short:
        return None
    reasons = tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in short)
    too_small = any(pod.requests.get(name, 0) > node.allocatable.get(name, 0) for name in short)
    return Refusal(NODE_RESOURCES, reasons, final=too_small)


def declared_features(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    missing = pod.features.difference(node.node.status.declared_features) if pod.features else frozenset()
    if not missing:
        return None
    why = f"node declared features check failed - unsatisfied requirements: {', '.join(sorted(missing))}"
    return Refusal(DECLARED_FEATURES, (why,), final=True)


def claims(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    """Nothing of podling's allocates devices, so a pod that claims some waits for ever."""
    if not pod.pod.spec.resource_claims:
        return None
    return Refusal(DYNAMIC_RESOURCES, ("cannot allocate all claims",), final=True)


FILTERS: tuple[Filter, ...] = (
    pinned,
    node_unschedulable,
    node_name,
    taints,
    node_affinity,
    host_ports,
    resources,
    declared_features,
    claims,
)
