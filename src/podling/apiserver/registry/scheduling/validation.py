"""Faults of what a pod asks of the scheduler beside affinity: tolerations, spread, gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import choice, duplicate, invalid, not_supported, required
from podling.apiserver.registry.label_selectors import validate_label_selector
from podling.apiserver.registry.scheduling.keys import validate_merged_keys
from podling.model import names
from podling.model.errors import Cause
from podling.model.scheduling import PodSchedulingGate, Toleration, TopologySpreadConstraint

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNSATISFIABLE = frozenset(("DoNotSchedule", "ScheduleAnyway"))
NOT_POSITIVE = "must be greater than zero"
NODE_POLICIES = frozenset(("Honor", "Ignore"))


def validate_gates(gates: list[PodSchedulingGate], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        yield from metadata.validate_label_key(gate.name, f"{path}[{i}]")
        if gate.name in seen:
            yield duplicate(f"{path}[{i}]", gate.name)
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
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", toleration.effect, why)
    yield from _validate_toleration_value(toleration, f"{path}.operator")
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(f"{path}.effect", toleration.effect, EFFECTS)


def _validate_toleration_value(toleration: Toleration, path: str) -> Iterator[Cause]:
    """Kubernetes names the operator also where the value is wrong."""
    if toleration.operator == "Exists":
        if toleration.value:
            yield invalid(path, toleration.value, "value must be empty when `operator` is 'Exists'")
    elif toleration.operator in ("", "Equal"):
        faults = names.label_value(toleration.value)
        if faults:
            yield invalid(path, toleration.value, ";".join(faults))
    else:
        yield not_supported(path, toleration.operator, ("Equal", "Exists"))


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
        yield from _validate_min_domains(constraint, f"{where}.minDomains")
        yield from choice(f"{where}.nodeAffinityPolicy", constraint.node_affinity_policy, NODE_POLICIES)
        yield from choice(f"{where}.nodeTaintsPolicy", constraint.node_taints_policy, NODE_POLICIES)
        keys = f"{where}.matchLabelKeys"
        yield from validate_merged_keys(constraint.match_label_keys, constraint.label_selector, keys, keys)
        yield from validate_label_selector(constraint.label_selector, f"{where}.labelSelector")


def _pair(constraint: TopologySpreadConstraint) -> tuple[str, str]:
    """What no two constraints of a pod may share."""
    return constraint.topology_key, constraint.when_unsatisfiable


def _validate_min_domains(constraint: TopologySpreadConstraint, path: str) -> Iterator[Cause]:
    if constraint.min_domains is None:
        return
    if constraint.min_domains <= 0:
        yield invalid(path, constraint.min_domains, NOT_POSITIVE)
    if constraint.when_unsatisfiable != "DoNotSchedule":
        action = constraint.when_unsatisfiable
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(path, constraint.min_domains, why)
