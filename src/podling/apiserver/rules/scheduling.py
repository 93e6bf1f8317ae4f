"""Validation of what a pod asks of the scheduler: affinity, tolerations, topology spread constraints,
scheduling gates.

`matchLabelKeys` and `mismatchLabelKeys` name labels of the pod itself. `complete_selectors` adds them to the
selectors once, when the pod is created, so that the scheduler reads selectors only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import (
    all_invalid,
    choice,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.rules.metadata import validate_label_selector, validate_values
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.meta import LabelSelector, LabelSelectorRequirement
from podling.model.types.pod import (
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSchedulingGate,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)

TOLERATED, COMPARISONS = ("Equal", "Exists"), ("Lt", "Gt")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

RENAMED_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
}
"""Of nodes: since when a label is deprecated, and what it is called now."""

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNSATISFIABLE = frozenset(("DoNotSchedule", "ScheduleAnyway"))
NOT_POSITIVE = "must be greater than zero"
NODE_POLICIES = frozenset(("Honor", "Ignore"))


def complete_selectors(spec: PodSpec, labels: Mapping[str, str]) -> None:
    """Of a new pod. Changed in place."""
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if affinity is not None:
                for weighted in affinity.preferred_during_scheduling_ignored_during_execution:
                    _complete_term(weighted.pod_affinity_term, labels)
                for term in affinity.required_during_scheduling_ignored_during_execution:
                    _complete_term(term, labels)
    for constraint in spec.topology_spread_constraints:
        _complete(constraint.label_selector, constraint.match_label_keys, "In", labels)


def _complete_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> None:
    _complete(term.label_selector, term.match_label_keys, "In", labels)
    _complete(term.label_selector, term.mismatch_label_keys, "NotIn", labels)


def _complete(
    selector: LabelSelector | None, keys: Sequence[str], operator: str, labels: Mapping[str, str]
) -> None:
    """A selector that is not there matches nothing, whatever it is completed with. Once is enough."""
    if selector is None or not keys:
        return
    wanted = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for key in keys
        if key in labels
    ]
    known = {(one.key, one.operator, *one.values) for one in selector.match_expressions}
    missing = [one for one in wanted if (one.key, one.operator, *one.values) not in known]
    selector.match_expressions = selector.match_expressions + missing


def validate_merged_keys(
    match: Sequence[str],
    selector: LabelSelector | None,
    doubled_path: str,
    path: str,
    mismatch: Sequence[str] = (),
) -> Iterator[Cause]:
    """Of a completed selector: a key that stands in it twice was in it before. `doubled_path`: where that is
    said to be."""
    if not match and not mismatch:
        return
    mismatch_path = path.replace("matchLabelKeys", "mismatchLabelKeys")
    yield from _validate_keys(match, selector, path)
    yield from _validate_keys(mismatch, selector, mismatch_path)
    seen = set(selector.match_labels) if selector is not None else set()
    first = {key: len(match) - 1 - i for i, key in enumerate(reversed(match))}
    for expression in selector.match_expressions if selector is not None else ():
        if expression.key in first and expression.key in seen:
            where = f"{doubled_path}[{first[expression.key]}]"
            yield invalid(where, expression.key, "exists in both matchLabelKeys and labelSelector")
        seen.add(expression.key)
    other = frozenset(mismatch)
    for i, key in enumerate(match):
        if key in other:
            yield invalid(f"{path}[{i}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")


def _validate_keys(keys: Sequence[str], selector: LabelSelector | None, path: str) -> Iterator[Cause]:
    if keys and selector is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
        return
    for i, key in enumerate(keys):
        yield from metadata.validate_label_key(key, f"{path}[{i}]")


def validate_affinity(affinity: Affinity, path: str) -> Iterator[Cause]:
    if (node := affinity.node_affinity) is not None:
        needed = node.required_during_scheduling_ignored_during_execution
        if needed is not None:
            yield from validate_node_selector(needed, f"{path}.nodeAffinity.{REQUIRED}")
        for i, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            where = f"{path}.nodeAffinity.{PREFERRED}[{i}]"
            yield from _validate_weight(preferred.weight, f"{where}.weight")
            yield from _validate_node_term(preferred.preference, f"{where}.preference", strict=False)
    if affinity.pod_affinity is not None:
        yield from _validate_pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        yield from _validate_pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def validate_node_selector(selector: NodeSelector, path: str) -> Iterator[Cause]:
    where = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(where, "must have at least one node selector term")
    for i, term in enumerate(selector.node_selector_terms):
        yield from _validate_node_term(term, f"{where}[{i}]", strict=True)


def _validate_weight(weight: int, path: str) -> list[Cause]:
    return [] if 1 <= weight <= 100 else [invalid(path, weight, "must be in the range 1-100")]


def _validate_node_term(term: NodeSelectorTerm, path: str, *, strict: bool) -> Iterator[Cause]:
    """`strict`: values must be labels; a preference may go for what no node has."""
    for i, requirement in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        if requirement.operator not in ("Gt", "Lt"):
            yield from validate_values(requirement.operator, requirement.values, where)
        elif len(requirement.values) != 1:
            yield required(
                f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
            )
        yield from metadata.validate_label_key(requirement.key, f"{where}.key")
        for j, value in enumerate(requirement.values if strict else ()):
            yield from all_invalid(f"{where}.values[{j}]", value, names.label_value(value))
    for i, requirement in enumerate(term.match_fields):
        where = f"{path}.matchFields[{i}]"
        if requirement.operator not in ("In", "NotIn"):
            yield invalid(f"{where}.operator", requirement.operator, "not a valid selector operator")
        elif len(requirement.values) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{where}.values", why)
        if requirement.key != "metadata.name":
            yield invalid(f"{where}.key", requirement.key, "not a valid field selector key")
        else:
            for j, value in enumerate(requirement.values):
                yield from all_invalid(f"{where}.values[{j}]", value, names.dns1123_subdomain(value))


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


def validate_gates(gates: list[PodSchedulingGate], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        yield from metadata.validate_label_key(gate.name, f"{path}[{i}]")
        if gate.name in seen:
            yield duplicate(f"{path}[{i}]", gate.name)
        seen.add(gate.name)


def validate_tolerations(tolerations: list[Toleration], path: str) -> Iterator[Cause]:
    for i, toleration in enumerate(tolerations):
        where = f"{path}[{i}]"
        if toleration.key:
            yield from metadata.validate_label_key(toleration.key, f"{where}.key")
        elif toleration.operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{where}.operator", toleration.operator, why)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", toleration.effect, why)
        # Kubernetes names the operator also where the value is wrong.
        operator = f"{where}.operator"
        if toleration.operator == "Exists":
            if toleration.value:
                yield invalid(operator, toleration.value, "value must be empty when `operator` is 'Exists'")
        elif toleration.operator in ("", "Equal"):
            faults = names.label_value(toleration.value)
            if faults:
                yield invalid(operator, toleration.value, ";".join(faults))
        else:
            # Of a comparison, which is behind a gate that is off, Kubernetes says it in other words.
            compared = COMPARISONS if toleration.operator in COMPARISONS else ()
            yield not_supported(operator, toleration.operator, (*TOLERATED, *compared))
        if toleration.effect and toleration.effect not in EFFECTS:
            yield not_supported(f"{where}.effect", toleration.effect, EFFECTS)


def validate_spread(constraints: list[TopologySpreadConstraint], path: str) -> Iterator[Cause]:
    left = Counter(map(_pair, constraints))
    for i, constraint in enumerate(constraints):
        where = f"{path}[{i}]"
        left[_pair(constraint)] -= 1
        if constraint.max_skew <= 0:
            yield invalid(f"{where}.maxSkew", constraint.max_skew, NOT_POSITIVE)
        if not constraint.topology_key:
            yield required(f"{where}.topologyKey", "can not be empty")
        yield from choice(f"{where}.whenUnsatisfiable", constraint.when_unsatisfiable, UNSATISFIABLE)
        if left[_pair(constraint)]:
            key, action = _pair(constraint)
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        if constraint.min_domains is not None:
            if constraint.min_domains <= 0:
                yield invalid(f"{where}.minDomains", constraint.min_domains, NOT_POSITIVE)
            if constraint.when_unsatisfiable != "DoNotSchedule":
                action = constraint.when_unsatisfiable
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(f"{where}.minDomains", constraint.min_domains, why)
        yield from choice(f"{where}.nodeAffinityPolicy", constraint.node_affinity_policy, NODE_POLICIES)
        yield from choice(f"{where}.nodeTaintsPolicy", constraint.node_taints_policy, NODE_POLICIES)
        keys = f"{where}.matchLabelKeys"
        yield from validate_merged_keys(constraint.match_label_keys, constraint.label_selector, keys, keys)
        yield from validate_label_selector(constraint.label_selector, f"{where}.labelSelector")


def _pair(constraint: TopologySpreadConstraint) -> tuple[str, str]:
    """What no two constraints of a pod may share."""
    return constraint.topology_key, constraint.when_unsatisfiable
