"""Warnings of what a pod asks of the scheduler: labels that have new names, selectors that select nothing."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.scheduling.affinity import PREFERRED, REQUIRED
from podling.model.pod import PodSpec
from podling.model.scheduling import Affinity, NodeSelectorTerm

DEPRECATED_LABELS = {
    key: f'deprecated since {since}; use "{label}" instead'
    for key, since, label in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    )
}
NO_SELECTOR = "a null labelSelector results in matching no pod"


def warn_of_scheduling(spec: PodSpec, path: str) -> Iterator[str]:
    for key in spec.node_selector:
        if key in DEPRECATED_LABELS:
            yield f"{path}.nodeSelector[{key}]: {DEPRECATED_LABELS[key]}"
    if spec.affinity is not None:
        yield from _warn_of_affinity(spec.affinity, f"{path}.affinity")
    for i, constraint in enumerate(spec.topology_spread_constraints):
        where, key = f"{path}.topologySpreadConstraints[{i}]", constraint.topology_key
        if key in DEPRECATED_LABELS:
            yield f"{where}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.label_selector is None:
            yield f"{where}.labelSelector: {NO_SELECTOR}"


def _warn_of_affinity(affinity: Affinity, path: str) -> Iterator[str]:
    node = affinity.node_affinity
    if node is not None:
        needed = node.required_during_scheduling_ignored_during_execution
        for i, term in enumerate(needed.node_selector_terms if needed is not None else ()):
            yield from _warn_of_term(term, f"{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms[{i}]")
        for i, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            yield from _warn_of_term(preferred.preference, f"{path}.nodeAffinity.{PREFERRED}[{i}].preference")
    for wire, pods in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if pods is None:
            continue
        for i, near in enumerate(pods.required_during_scheduling_ignored_during_execution):
            if near.label_selector is None:
                yield f"{path}.{wire}.{REQUIRED}[{i}].labelSelector: {NO_SELECTOR}"
        for i, weighted in enumerate(pods.preferred_during_scheduling_ignored_during_execution):
            if weighted.pod_affinity_term.label_selector is None:
                yield f"{path}.{wire}.{PREFERRED}[{i}].podAffinityTerm.labelSelector: {NO_SELECTOR}"


def _warn_of_term(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    for i, expression in enumerate(term.match_expressions):
        if expression.key in DEPRECATED_LABELS:
            why = f"{expression.key} is {DEPRECATED_LABELS[expression.key]}"
            yield f"{path}.matchExpressions[{i}].key: {why}"
