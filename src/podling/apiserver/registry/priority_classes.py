"""PriorityClasses: names for how important a pod is. Two are the system's own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.field import IMMUTABLE, forbidden, invalid, one_of
from podling.apiserver.registry.kind import Column, Kind
from podling.model.errors import Cause
from podling.model.priority_class import SYSTEM_CLASSES, PriorityClass
from podling.model.scheme import resource_of

HIGHEST = 1_000_000_000
SYSTEM_PREFIX = "system-"
PREEMPT, NEVER = "PreemptLowerPriority", "Never"


class PriorityClasses(Kind[PriorityClass]):
    resource = resource_of(PriorityClass)
    columns = (
        NAME,
        Column("Value", "integer", description="The priority of pods of this class."),
        Column("Global-Default", "boolean", description="Whether pods without a class are of this one."),
        AGE,
        Column("PreemptionPolicy", description="Whether its pods may push others off a node."),
    )

    def default(self, obj: PriorityClass) -> None:
        obj.preemption_policy = obj.preemption_policy or PREEMPT

    def prepare_create(self, obj: PriorityClass, now: datetime) -> None:
        # It has the first generation for good: nothing that counts may change.
        obj.metadata.generation = 1

    def validate(self, obj: PriorityClass) -> list[Cause]:
        causes = metadata.validate(obj.metadata, namespaced=False)
        causes += _validate_value(obj)
        return causes + one_of("preemptionPolicy", obj.preemption_policy or "", (PREEMPT, NEVER))

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
