"""Which nodes a pod may run on. Pure: a pod and a node in, the reasons against it out, in Kubernetes' words.

The filters stand in the order upstream runs them; the first that objects speaks for the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from podling.model.node import Node, Taint
from podling.model.pod import Pod
from podling.model.resources import is_sidecar, pod_requests
from podling.model.scheduling import NodeSelectorRequirement, NodeSelectorTerm, Toleration
from podling.model.taints import tolerates
from podling.scheduler.node_info import PODS, NodeInfo

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
REPELLING = ("NoSchedule", "NoExecute")

Filter = Callable[[Pod, NodeInfo], Iterable[str]]


def objections(pod: Pod, info: NodeInfo) -> list[str]:
    """Why `pod` cannot run on the node; empty when it can."""
    for check in FILTERS:
        if found := list(check(pod, info)):
            return found
    return []


def node_unschedulable(pod: Pod, info: NodeInfo) -> Iterable[str]:
    taint = Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")
    if info.node.spec.unschedulable and not tolerated(taint, pod.spec.tolerations):
        yield "node(s) were unschedulable"


def node_name(pod: Pod, info: NodeInfo) -> Iterable[str]:
    if pod.spec.node_name and pod.spec.node_name != info.node.metadata.name:
        yield "node(s) didn't match the requested node name"


def taints(pod: Pod, info: NodeInfo) -> Iterable[str]:
    for taint in info.node.spec.taints:
        if taint.effect in REPELLING and not tolerated(taint, pod.spec.tolerations):
            yield f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
            return


def node_affinity(pod: Pod, info: NodeInfo) -> Iterable[str]:
    if not _selected(pod, info.node):
        yield "node(s) didn't match Pod's node affinity/selector"


def host_ports(pod: Pod, info: NodeInfo) -> Iterable[str]:
    wanted = set(_host_ports(pod))
    if wanted and any(_collide(wanted, set(_host_ports(other))) for other in info.pods.values()):
        yield "node(s) didn't have free ports for the requested pod ports"


def resources(pod: Pod, info: NodeInfo) -> Iterable[str]:
    for resource in info.shortages(pod_requests(pod)):
        yield "Too many pods" if resource == PODS else f"Insufficient {resource}"


FILTERS: tuple[Filter, ...] = (node_unschedulable, node_name, taints, node_affinity, host_ports, resources)


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _selected(pod: Pod, node: Node) -> bool:
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
            return _compares(requirement, value)
    return False


def _compares(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    try:
        left, right = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if requirement.operator == "Gt" else left < right


HostPort = tuple[str, str, int]
"""(protocol, address, port); an empty address is every address."""


def _host_ports(pod: Pod) -> Iterable[HostPort]:
    sidecars = (container for container in pod.spec.init_containers if is_sidecar(container))
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port:
                address = "" if port.host_ip in ("", "0.0.0.0") else port.host_ip
                yield port.protocol or "TCP", address, port.host_port


def _collide(wanted: set[HostPort], used: set[HostPort]) -> bool:
    return any(
        (protocol, port) == (other_protocol, other_port) and (not address or not other or address == other)
        for protocol, address, port in wanted
        for other_protocol, other, other_port in used
    )
