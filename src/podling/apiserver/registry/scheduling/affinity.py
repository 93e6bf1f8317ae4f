"""Faults of affinity: which nodes a pod wants or needs, and which pods near or far."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import all_invalid, invalid, required
from podling.apiserver.registry.label_selectors import validate_label_selector, validate_values
from podling.apiserver.registry.scheduling.keys import validate_merged_keys
from podling.model import names
from podling.model.errors import Cause
from podling.model.scheduling import (
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_affinity(affinity: Affinity, path: str) -> Iterator[Cause]:
    if affinity.node_affinity is not None:
        yield from _validate_node_affinity(affinity.node_affinity, f"{path}.nodeAffinity")
    if affinity.pod_affinity is not None:
        yield from _validate_pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        yield from _validate_pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _validate_node_affinity(affinity: NodeAffinity, path: str) -> Iterator[Cause]:
    needed = affinity.required_during_scheduling_ignored_during_execution
    if needed is not None:
        where = f"{path}.{REQUIRED}.nodeSelectorTerms"
        if not needed.node_selector_terms:
            yield required(where, "must have at least one node selector term")
        for i, term in enumerate(needed.node_selector_terms):
            yield from _validate_node_term(term, f"{where}[{i}]", strict=True)
    for i, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = f"{path}.{PREFERRED}[{i}]"
        yield from _validate_weight(preferred.weight, f"{where}.weight")
        yield from _validate_node_term(preferred.preference, f"{where}.preference", strict=False)


def _validate_weight(weight: int, path: str) -> list[Cause]:
    return [] if 1 <= weight <= 100 else [invalid(path, weight, "must be in the range 1-100")]


def _validate_node_term(term: NodeSelectorTerm, path: str, *, strict: bool) -> Iterator[Cause]:
    """`strict`: values must be labels; a preference may go for what no node has."""
    for i, requirement in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        yield from _validate_node_operator(requirement, where)
        yield from metadata.validate_label_key(requirement.key, f"{where}.key")
        for j, value in enumerate(requirement.values if strict else ()):
            yield from all_invalid(f"{where}.values[{j}]", value, names.label_value(value))
    for i, requirement in enumerate(term.match_fields):
        yield from _validate_node_field(requirement, f"{path}.matchFields[{i}]")


def _validate_node_operator(requirement: NodeSelectorRequirement, path: str) -> Iterator[Cause]:
    if requirement.operator not in ("Gt", "Lt"):
        yield from validate_values(requirement.operator, requirement.values, path)
    elif len(requirement.values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")


def _validate_node_field(requirement: NodeSelectorRequirement, path: str) -> Iterator[Cause]:
    if requirement.operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", requirement.operator, "not a valid selector operator")
    elif len(requirement.values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", why)
    if requirement.key != "metadata.name":
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")
        return
    for i, value in enumerate(requirement.values):
        yield from all_invalid(f"{path}.values[{i}]", value, names.dns1123_subdomain(value))


def _validate_pod_affinity(affinity: PodAffinity | PodAntiAffinity, path: str) -> Iterator[Cause]:
    for i, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _validate_pod_term(term, f"{path}.{REQUIRED}[{i}]")
    for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = f"{path}.{PREFERRED}[{i}]"
        yield from _validate_weight(weighted.weight, f"{where}.weight")
        yield from _validate_pod_term(weighted.pod_affinity_term, f"{where}.podAffinityTerm")


def _validate_pod_term(term: PodAffinityTerm, path: str) -> Iterator[Cause]:
    yield from validate_label_selector(term.label_selector, f"{path}.labelSelector")
    yield from validate_label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for name in term.namespaces:
        yield from all_invalid(f"{path}.namespace", name, names.dns1123_label(name))
    yield from validate_merged_keys(
        term.match_label_keys, term.label_selector, path, f"{path}.matchLabelKeys", term.mismatch_label_keys
    )
    if not term.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from metadata.validate_label_key(term.topology_key, f"{path}.topologyKey")
