"""ResourceQuotas: how much all objects of a namespace may use together. What they use is in the status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.container.resource_validation import validate_quantity, validate_standard
from podling.apiserver.registry.field import IMMUTABLE, invalid, required
from podling.apiserver.registry.kind import Column, Kind, Part
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.resource_quota import ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement
from podling.model.scheme import resource_of

SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
COMPUTE = ("cpu", "memory", "ephemeral-storage")
RESOURCES = frozenset(
    (
        *COMPUTE,
        *(f"{side}.{name}" for side in ("limits", "requests") for name in COMPUTE),
        "requests.storage",
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    )
)
HUGE_PAGES = ("hugepages-", "requests.hugepages-")
OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
WITHOUT_VALUES = ("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "Terminating")
OF_PODS = {"pods", *(f"{side}{name}" for side in ("", "limits.", "requests.") for name in ("cpu", "memory"))}
APPLICABLE = {
    **dict.fromkeys((*WITHOUT_VALUES, "PriorityClass"), OF_PODS),
    "BestEffort": {"pods"},
    "VolumeAttributesClass": {"persistentvolumeclaims", "requests.storage"},
}
"""What can be counted of a scope only."""
MISAPPLIED = "unsupported scope applied to resource"


class _Status(Part[ResourceQuota]):
    name = "status"

    def prepare_update(self, new: ResourceQuota, old: ResourceQuota) -> None:
        new.spec = old.spec

    def validate_update(self, new: ResourceQuota, old: ResourceQuota) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *_validate_amounts(new.status.hard, "status.hard"),
            *_validate_amounts(new.status.used, "status.used"),
        ]


class ResourceQuotas(Kind[ResourceQuota]):
    resource = resource_of(ResourceQuota)
    returns_deleted = True
    subresources = {"status": _Status()}
    columns = (
        NAME,
        Column("Request", description="What is used of what may be requested."),
        Column("Limit", description="What is used of the limits that may be set."),
        AGE,
    )

    def prepare_create(self, obj: ResourceQuota, now: datetime) -> None:
        obj.status = type(obj.status)()

    def prepare_update(self, new: ResourceQuota, old: ResourceQuota) -> None:
        new.status = old.status

    def validate(self, obj: ResourceQuota) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata),
            *_validate_amounts(obj.spec.hard, "spec.hard"),
            *_validate_scopes(obj.spec),
            *_validate_scope_selector(obj.spec),
        ]

    def validate_update(self, new: ResourceQuota, old: ResourceQuota) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if set(new.spec.scopes) != set(old.spec.scopes):
            causes.append(invalid("spec.scopes", new.spec.scopes, IMMUTABLE))
        return causes

    def row(self, obj: ResourceQuota, now: datetime) -> list[Any]:
        used, hard = obj.status.used, obj.status.hard
        shown = {name: f"{name}: {used.get(name, Quantity())}/{hard[name]}" for name in sorted(hard)}
        limits = [text for name, text in shown.items() if name.startswith("limits")]
        requests = [text for name, text in shown.items() if not name.startswith("limits")]
        return [
            obj.metadata.name,
            ", ".join(requests),
            ", ".join(limits),
            age(obj.metadata.creation_timestamp, now),
        ]


def _validate_amounts(amounts: dict[str, Quantity], path: str) -> Iterator[Cause]:
    for name, amount in amounts.items():
        where = f"{path}[{name}]"
        yield from validate_standard(name, where)
        if "/" not in name and not _is_counted(name):
            yield invalid(where, name, "must be a standard resource for quota")
        yield from validate_quantity(name, amount, where)


def _is_counted(name: str) -> bool:
    return name in RESOURCES or name.startswith(HUGE_PAGES)


def _validate_scopes(spec: ResourceQuotaSpec) -> Iterator[Cause]:
    path, scopes = "spec.scopes", spec.scopes
    # Each says all scopes, so what is said of many is made once.
    unsupported, misapplied = invalid(path, scopes, "unsupported scope"), invalid(path, scopes, MISAPPLIED)
    yield from (unsupported for scope in scopes if scope not in SCOPES)
    for scope in dict.fromkeys(scopes):
        yield from (misapplied for _ in _misapplied(scope, spec.hard))
    if _conflict(scopes):
        yield invalid(path, scopes, "conflicting scopes")


def _validate_scope_selector(spec: ResourceQuotaSpec) -> Iterator[Cause]:
    """Kubernetes does not say which requirement it means."""
    if spec.scope_selector is None:
        return
    path, requirements = "spec.scopeSelector.matchExpressions", spec.scope_selector.match_expressions
    misapplied = invalid(path, spec.scope_selector, MISAPPLIED)
    judged: set[str] = set()
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        if scope not in judged:
            yield from (misapplied for _ in _misapplied(scope, spec.hard))
        judged.add(scope)
        yield from _validate_requirement(requirement, path)
    if _conflict([requirement.scope_name for requirement in requirements]):
        yield invalid(path, spec.scopes, "conflicting scopes")


def _validate_requirement(requirement: ScopedResourceSelectorRequirement, path: str) -> Iterator[Cause]:
    operator, values = requirement.operator, requirement.values
    if requirement.scope_name in WITHOUT_VALUES and operator != "Exists":
        yield invalid(
            f"{path}.operator",
            operator,
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
            "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        )
    if operator in ("In", "NotIn"):
        if not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{path}.values", why)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(f"{path}.values", values, why)
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")


def _conflict(scopes: list[str]) -> bool:
    return any(set(pair) <= set(scopes) for pair in OPPOSITES)


def _misapplied(scope: str, hard: Iterable[str]) -> list[str]:
    """Resources a quota counts, and cannot count of `scope` only."""
    applicable = APPLICABLE.get(scope)
    return (
        [] if applicable is None else [name for name in hard if _is_counted(name) and name not in applicable]
    )
