"""What decides whether a pod may run on a node: taints, host ports, node affinity, declared features. Pure.

The scheduler asks when it chooses a node, the kubelet when it admits the pod, and API server and controllers
for single questions, so that all of them answer alike. Declared features are those a kubelet lists in
`status.declaredFeatures` while they are new, so that a newer control plane does not need them of an older
node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from podling.model.rules.resources import is_sidecar
from podling.model.types.node import Node, Taint
from podling.model.types.pod import NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint of a node that somebody knows to be off: its pods and volumes are taken away at once."""
GOING = "ToBeDeletedByClusterAutoscaler"
"""The taint of a node that the autoscaler is about to take away."""
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NO_EXECUTE, NO_SCHEDULE = "NoExecute", "NoSchedule"

RESTART_ALL = "RestartAllContainersOnContainerExits"
RESIZE_POD = "InPlacePodLevelResourcesVerticalScaling"
RESIZE_INIT = "InPlacePodVerticalScalingInitContainers"
HostPort = tuple[str, str, int]
"""(protocol, address, port); an empty address is every address."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def ports_collide(pod: Pod, others: Iterable[Pod]) -> bool:
    wanted = set(host_ports(pod))
    return bool(wanted) and any(collide(wanted, set(host_ports(other))) for other in others)


def host_ports(pod: Pod) -> Iterator[HostPort]:
    sidecars = (container for container in pod.spec.init_containers if is_sidecar(container))
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port:
                address = "" if port.host_ip in ("", "0.0.0.0") else port.host_ip
                yield port.protocol or "TCP", address, port.host_port


def collide(wanted: Set[HostPort], used: Set[HostPort]) -> bool:
    return any(
        (protocol, port) == (other_protocol, other_port) and (not address or not other or address == other)
        for protocol, address, port in wanted
        for other_protocol, other, other_port in used
    )


def selects(pod: Pod, node: Node) -> bool:
    """Whether a pod's `nodeSelector` and required node affinity allow `node`."""
    if any(node.metadata.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(matches(term, node) for term in required.node_selector_terms)


def matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether a node selector term selects `node`; an empty term selects nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(r, node.metadata.labels) for r in term.match_expressions) and all(
        _holds(r, fields) for r in term.match_fields
    )


def _holds(requirement: NodeSelectorRequirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            try:
                left, right = int(value or ""), int(requirement.values[0])
            except (ValueError, IndexError):
                return False
            return left > right if requirement.operator == "Gt" else left < right
    return False


def needed_to_run(spec: PodSpec) -> frozenset[str]:
    """Names of the features that a node must declare to run a pod of this spec."""
    rules = (rule for one in (*spec.containers, *spec.init_containers) for rule in one.restart_policy_rules)
    return frozenset({RESTART_ALL} if any(rule.action == "RestartAllContainers" for rule in rules) else ())


def needed_to_change(new: PodSpec, old: PodSpec) -> frozenset[str]:
    """Names of the features that the pod's node must declare to carry out an update of its spec."""
    needed = set()
    if new.resources != old.resources:
        needed.add(RESIZE_POD)
    for after, before in zip(new.init_containers, old.init_containers, strict=False):
        if after.resources != before.resources and not is_sidecar(before):
            needed.add(RESIZE_INIT)
    return frozenset(needed)
