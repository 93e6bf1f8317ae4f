"""Faults of what a pod asks of the scheduler: selectors, affinity, tolerations, spread, gates."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import (
    at_least,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from podling.model.errors import Cause
from podling.model.meta import LabelSelector
from podling.model.pod import PodSpec
from podling.model.scheduling import (
    Affinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpreadConstraint,
)

EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def validate_scheduling(spec: PodSpec, path: str) -> Iterator[Cause]:
    yield from metadata.validate_labels(spec.node_selector, f"{path}.nodeSelector")
    if spec.affinity is not None:
        yield from _validate_affinity(spec.affinity, f"{path}.affinity")
    yield from validate_tolerations(spec.tolerations, f"{path}.tolerations")
    yield from _validate_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    seen: set[str] = set()
    for i, gate in enumerate(spec.scheduling_gates):
        yield from metadata.validate_label_key(gate.name, f"{path}.schedulingGates[{i}]")
        if gate.name in seen:
            yield duplicate(f"{path}.schedulingGates[{i}]", gate.name)
        seen.add(gate.name)


def validate_tolerations(tolerations: list[Toleration], path: str) -> Iterator[Cause]:
    for i, toleration in enumerate(tolerations):
        yield from _validate_toleration(toleration, f"{path}[{i}]")


def _validate_toleration(toleration: Toleration, path: str) -> Iterator[Cause]:
    if toleration.key:
        yield from metadata.validate_label_key(toleration.key, f"{path}.key")
    elif toleration.operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", toleration.operator, why)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield invalid(
            f"{path}.effect", toleration.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    if toleration.operator == "Exists" and toleration.value:
        yield invalid(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'")
    elif toleration.operator not in ("", "Equal", "Exists"):
        yield not_supported(f"{path}.operator", toleration.operator, ("Equal", "Exists"))
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(f"{path}.effect", toleration.effect, EFFECTS)


def _validate_affinity(affinity: Affinity, path: str) -> Iterator[Cause]:
    node = affinity.node_affinity
    if node is not None:
        required_terms = node.required_during_scheduling_ignored_during_execution
        where = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        if required_terms is not None:
            if not required_terms.node_selector_terms:
                yield required(f"{where}.nodeSelectorTerms", "must have at least one node selector term")
            for i, term in enumerate(required_terms.node_selector_terms):
                yield from _validate_node_term(term, f"{where}.nodeSelectorTerms[{i}]")
        where = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        for i, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            yield from _validate_weight(preferred.weight, f"{where}[{i}].weight")
            yield from _validate_node_term(preferred.preference, f"{where}[{i}].preference")
    for pod_affinity, name in (
        (affinity.pod_affinity, "podAffinity"),
        (affinity.pod_anti_affinity, "podAntiAffinity"),
    ):
        if pod_affinity is not None:
            yield from _validate_pod_affinity(pod_affinity, f"{path}.{name}")


def _validate_weight(weight: int, path: str) -> list[Cause]:
    return [] if 1 <= weight <= 100 else [invalid(path, weight, "must be in the range 1-100")]


def _validate_node_term(term: NodeSelectorTerm, path: str) -> Iterator[Cause]:
    for i, requirement in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        yield from _validate_node_requirement(requirement, where)
        yield from metadata.validate_label_key(requirement.key, f"{where}.key")
    for i, requirement in enumerate(term.match_fields):
        where = f"{path}.matchFields[{i}]"
        if requirement.key != "metadata.name":
            yield invalid(f"{where}.key", requirement.key, "not a valid field selector key")
        if requirement.operator not in ("In", "NotIn"):
            yield invalid(f"{where}.operator", requirement.operator, "not a valid selector operator")
        elif len(requirement.values) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{where}.values", why)


def _validate_node_requirement(requirement: NodeSelectorRequirement, path: str) -> Iterator[Cause]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden(
                    f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                yield required(
                    f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
        case other:
            yield invalid(f"{path}.operator", other, "not a valid selector operator")


def _validate_pod_affinity(affinity: PodAffinity | PodAntiAffinity, path: str) -> Iterator[Cause]:
    where = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _validate_pod_term(term, f"{where}[{i}]")
    where = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield from _validate_weight(weighted.weight, f"{where}[{i}].weight")
        yield from _validate_pod_term(weighted.pod_affinity_term, f"{where}[{i}].podAffinityTerm")


def _validate_pod_term(term: PodAffinityTerm, path: str) -> Iterator[Cause]:
    yield from validate_label_selector(term.label_selector, f"{path}.labelSelector")
    yield from validate_label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    if not term.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from metadata.validate_label_key(term.topology_key, f"{path}.topologyKey")


def validate_label_selector(selector: LabelSelector | None, path: str) -> Iterator[Cause]:
    if selector is None:
        return
    yield from metadata.validate_labels(selector.match_labels, f"{path}.matchLabels")
    for i, expression in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        if expression.operator in ("In", "NotIn"):
            if not expression.values:
                yield required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif expression.operator in ("Exists", "DoesNotExist"):
            if expression.values:
                yield forbidden(
                    f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        else:
            yield invalid(f"{where}.operator", expression.operator, "not a valid selector operator")
        yield from metadata.validate_label_key(expression.key, f"{where}.key")


def _validate_spread(constraints: list[TopologySpreadConstraint], path: str) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}[{i}]"
        yield from at_least(f"{where}.maxSkew", constraint.max_skew, 1)
        if not constraint.topology_key:
            yield required(f"{where}.topologyKey", "can not be empty")
        yield from one_of(f"{where}.whenUnsatisfiable", constraint.when_unsatisfiable, UNSATISFIABLE)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)
        if constraint.min_domains is not None:
            yield from at_least(f"{where}.minDomains", constraint.min_domains, 1)
            if constraint.when_unsatisfiable != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {pair[1]}"
                yield invalid(f"{where}.minDomains", constraint.min_domains, why)
        yield from validate_label_selector(constraint.label_selector, f"{where}.labelSelector")
