"""Node affinity and tolerations of a pod, beyond what `podling.model.rules.placement` answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podling.model.rules.placement import NO_EXECUTE, NO_SCHEDULE, matches, tolerates
from podling.model.types.node import Node, Taint
from podling.model.types.pod import NodeAffinity, NodeSelector, PodSpec, Toleration

REPELLING = (NO_SCHEDULE, NO_EXECUTE)
AVOIDED = "PreferNoSchedule"


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether one of `taints` keeps the pod from being scheduled to the node."""
    return any(taint.effect in REPELLING and not tolerated(taint, tolerations) for taint in taints)


def avoided(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """The number of PreferNoSchedule taints that the pod does not tolerate."""
    return sum(1 for taint in taints if taint.effect == AVOIDED and not tolerated(taint, tolerations))


def node_affinity(spec: PodSpec) -> NodeAffinity | None:
    return spec.affinity.node_affinity if spec.affinity else None


def required_terms(spec: PodSpec) -> NodeSelector | None:
    affinity = node_affinity(spec)
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def asks_for_nodes(spec: PodSpec) -> bool:
    """Whether the pod has a nodeSelector or required node affinity."""
    return bool(spec.node_selector) or required_terms(spec) is not None


def preferred_weight(spec: PodSpec, node: Node) -> int:
    """The sum of the weights of the preferred terms that the node matches."""
    affinity = node_affinity(spec)
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return sum(term.weight for term in terms if matches(term.preference, node))


def named_nodes(spec: PodSpec) -> frozenset[str] | None:
    """The node names, if every required term selects by name (as those of DaemonSet pods do); else None."""
    required = required_terms(spec)
    if required is None or not required.node_selector_terms:
        return None
    named: set[str] = set()
    for term in required.node_selector_terms:
        one = [set(field.values) for field in term.match_fields if field.operator == "In"]
        if not one:
            return None
        named |= set.intersection(*one)
    return frozenset(named)
