"""PriorityClasses, which name how important a pod is, and PodDisruptionBudgets, which limit how many of a set
of pods evictions may take away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.conditions import validate_conditions
from podling.apiserver.rules.field import (
    IMMUTABLE,
    at_least,
    forbidden,
    internal,
    invalid,
    not_supported,
    one_of,
)
from podling.apiserver.rules.metadata import validate_label_selector
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from podling.model.types.scheduling import SYSTEM_CLASSES, PriorityClass

HIGHEST = 1_000_000_000
SYSTEM_PREFIX = "system-"
PREEMPT, NEVER = "PreemptLowerPriority", "Never"

POLICIES = ("AlwaysAllow", "IfHealthyBudget")
COUNTS = ("disruptions_allowed", "current_healthy", "desired_healthy", "expected_pods")
NOT_AVAILABLE = "N/A"
_PERCENT = re.compile("[0-9]+%")
_PERCENTAGES = frozenset(f"{number or ''}%" for number in range(101))
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


class PriorityClasses(Kind[PriorityClass]):
    resource = resource_of(PriorityClass)
    judges_prefix_again = False
    columns = (
        NAME,
        Column("Value", "integer", description="The priority of pods of this class."),
        Column("Global-Default", "boolean", description="Whether pods without a class are of this one."),
        AGE,
        Column("PreemptionPolicy", description="Whether its pods may push others off a node."),
    )

    def default(self, obj: PriorityClass) -> None:
        obj.preemption_policy = PREEMPT if obj.preemption_policy is None else obj.preemption_policy

    def prepare_create(self, obj: PriorityClass, now: datetime) -> None:
        # It has the first generation for good: nothing that counts may change.
        obj.metadata.generation = 1

    def validate(self, obj: PriorityClass) -> list[Cause]:
        causes = metadata.validate(obj.metadata, namespaced=False)
        causes += _validate_value(obj)
        return causes + one_of("preemptionPolicy", obj.preemption_policy or "", (PREEMPT, NEVER))

    def validate_changed(self, new: PriorityClass, old: PriorityClass) -> list[Cause]:
        # The rest may not change, and is judged as a change.
        return metadata.validate(new.metadata, namespaced=False)

    def validate_update(self, new: PriorityClass, old: PriorityClass) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.value != old.value:
            causes.append(forbidden("value", "may not be changed in an update."))
        if new.preemption_policy != old.preemption_policy:
            causes.append(invalid("preemptionPolicy", new.preemption_policy, IMMUTABLE))
        return causes

    def row(self, obj: PriorityClass, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.value,
            obj.global_default,
            age(obj.metadata.creation_timestamp, now),
            obj.preemption_policy or "",
        ]


def _validate_value(obj: PriorityClass) -> list[Cause]:
    name = obj.metadata.name
    if not name.startswith(SYSTEM_PREFIX):
        most = f"maximum allowed value of a user defined priority is {HIGHEST}"
        return [forbidden("value", most)] if obj.value > HIGHEST else []
    known = SYSTEM_CLASSES.get(name)
    reserved = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: "
    if known is None:
        return [forbidden("metadata.name", f"{reserved}{name} is not a known system priority class")]
    if obj.value != known[0]:
        return [forbidden("metadata.name", f"{reserved}value of {name} PriorityClass must be {known[0]}")]
    if obj.global_default:
        why = f"globalDefault of {name} PriorityClass must be false"
        return [forbidden("metadata.name", reserved + why)]
    return []


def _validate_status(new: PodDisruptionBudget, old: PodDisruptionBudget) -> Iterator[Cause]:
    yield from validate_conditions(new.status.conditions, "status.conditions")
    for attribute in COUNTS:
        first, _, rest = attribute.partition("_")
        yield from at_least(f"status.{first}{rest.capitalize()}", getattr(new.status, attribute), 0)


class PodDisruptionBudgets(Controlled[PodDisruptionBudget]):
    resource = resource_of(PodDisruptionBudget)
    judges_prefix_again = False
    standard_finalizers = False
    updates_unconditionally = False
    subresources = {"status": Status(_validate_status)}
    columns = (
        NAME,
        Column("Min Available", description="How many of the pods must stay available."),
        Column("Max Unavailable", description="How many of the pods may be unavailable."),
        Column("Allowed Disruptions", "integer", description="How many may be evicted now."),
        AGE,
    )

    def validate(self, obj: PodDisruptionBudget) -> list[Cause]:
        return list(_validate_spec(obj.spec)) or metadata.validate_written(obj.metadata, standard=False)

    def row(self, obj: PodDisruptionBudget, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            _shown(obj.spec.min_available),
            _shown(obj.spec.max_unavailable),
            obj.status.disruptions_allowed,
            age(obj.metadata.creation_timestamp, now),
        ]


def _shown(value: int | str | None) -> str:
    return NOT_AVAILABLE if value is None else str(value)


def _validate_spec(spec: PodDisruptionBudgetSpec) -> Iterator[Cause]:
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield invalid("spec", internal(spec), "minAvailable and maxUnavailable cannot be both set")
    for wire, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if value is not None:
            where = f"spec.{wire}"
            if isinstance(value, int):
                yield from at_least(where, value, 0)
            elif not _PERCENT.fullmatch(value):
                yield invalid(where, value, _NO_PERCENT)
            elif value.lstrip("0") not in _PERCENTAGES:
                yield invalid(where, value, "must not be greater than 100%")
    yield from validate_label_selector(spec.selector, "spec.selector")
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, POLICIES)
