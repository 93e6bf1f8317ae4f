"""Whether a pod's selector and required affinity let it run on a node. Pure; scheduler and kubelet ask."""

from __future__ import annotations

from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.scheduling import NodeSelectorRequirement, NodeSelectorTerm


def selects(pod: Pod, node: Node) -> bool:
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
