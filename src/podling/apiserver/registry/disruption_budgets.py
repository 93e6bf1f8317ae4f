"""PodDisruptionBudgets: how many of some pods an eviction must leave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.conditions import validate_conditions
from podling.apiserver.registry.field import at_least, invalid, not_supported
from podling.apiserver.registry.kind import Column, Kind, Part
from podling.apiserver.registry.label_selectors import validate_label_selector
from podling.model import names
from podling.model.disruption_budget import PodDisruptionBudget, PodDisruptionBudgetSpec
from podling.model.errors import Cause
from podling.model.scheme import resource_of

POLICIES = ("AlwaysAllow", "IfHealthyBudget")
COUNTS = ("disruptions_allowed", "current_healthy", "desired_healthy", "expected_pods")
NOT_AVAILABLE = "N/A"
_PERCENT = re.compile("[0-9]+%")
_PERCENTAGES = frozenset(f"{number or ''}%" for number in range(101))
_NO_PERCENT = (
    "a valid percent string must consist of a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


class _Status(Part[PodDisruptionBudget]):
    name = "status"

    def prepare_update(self, new: PodDisruptionBudget, old: PodDisruptionBudget) -> None:
        new.spec = old.spec

    def validate_update(self, new: PodDisruptionBudget, old: PodDisruptionBudget) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        causes += validate_conditions(new.status.conditions, "status.conditions")
        for attribute in COUNTS:
            first, _, rest = attribute.partition("_")
            causes += at_least(f"status.{first}{rest.capitalize()}", getattr(new.status, attribute), 0)
        return causes


class PodDisruptionBudgets(Kind[PodDisruptionBudget]):
    resource = resource_of(PodDisruptionBudget)
    has_generation = True
    updates_unconditionally = False
    returns_deleted = False
    subresources = {"status": _Status()}
    columns = (
        NAME,
        Column("Min Available", description="How many of the pods must stay available."),
        Column("Max Unavailable", description="How many of the pods may be unavailable."),
        Column("Allowed Disruptions", "integer", description="How many may be evicted now."),
        AGE,
    )

    def prepare_create(self, obj: PodDisruptionBudget, now: datetime) -> None:
        obj.status = type(obj.status)()

    def prepare_update(self, new: PodDisruptionBudget, old: PodDisruptionBudget) -> None:
        new.status = old.status

    def validate(self, obj: PodDisruptionBudget) -> list[Cause]:
        return [*metadata.validate(obj.metadata, name_rule=names.path_segment), *_validate_spec(obj.spec)]

    def validate_update(self, new: PodDisruptionBudget, old: PodDisruptionBudget) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

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
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for wire, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if value is not None:
            yield from _validate_amount(value, f"spec.{wire}")
    yield from validate_label_selector(spec.selector, "spec.selector")
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, POLICIES)


def _validate_amount(value: int | str, path: str) -> Iterator[Cause]:
    if isinstance(value, int):
        yield from at_least(path, value, 0)
    elif not _PERCENT.fullmatch(value):
        yield invalid(path, value, _NO_PERCENT)
    elif value.lstrip("0") not in _PERCENTAGES:
        yield invalid(path, value, "must not be greater than 100%")
