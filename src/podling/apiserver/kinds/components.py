"""Kinds that are answered and never stored, besides reviews: `componentstatuses`, which `verbs/components.py`
reads from the parts of the cluster, and `bindings`, the older path of `pods/POD/binding`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from podling.apiserver.kinds.columns import NAME
from podling.apiserver.kinds.kind import Column, Kind
from podling.model.scheme import resource_of
from podling.model.types.core import ComponentStatus
from podling.model.types.pod import Binding, Pod

HEALTHY = "Healthy"
_SHOWN = {"True": HEALTHY, "False": "Unhealthy"}


class ComponentStatuses(Kind[ComponentStatus]):
    resource = resource_of(ComponentStatus)
    verbs = ("get", "list")
    deprecation = "v1 ComponentStatus is deprecated in v1.19+"
    columns = (
        NAME,
        Column("Status", description="Whether it is healthy."),
        Column("Message", description="What it answered."),
        Column("Error", description="Why it could not be asked."),
    )

    def row(self, obj: ComponentStatus, now: datetime) -> list[Any]:
        health = next((one for one in obj.conditions if one.type == HEALTHY), None)
        if health is None:
            return [obj.metadata.name, "Unknown", "", ""]
        return [obj.metadata.name, _SHOWN.get(health.status, "Unknown"), health.message, health.error]


class Bindings(Kind[Binding]):
    """What is posted here is an action on the pod that the body names."""

    resource = resource_of(Binding)
    verbs = ("create",)
    acts_on: ClassVar[tuple[str, str, str, str]] = ("", "v1", resource_of(Pod).plural, "binding")
    """The endpoint of the action."""

    def row(self, obj: Binding, now: datetime) -> list[Any]:
        """It is not shown in tables."""
        return []
