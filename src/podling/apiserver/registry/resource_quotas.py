"""ResourceQuotas: how much all objects of a namespace may use together. What they use is in the status."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.field import all_invalid, forbidden, invalid, not_supported, required
from podling.apiserver.registry.kind import Column, Kind, Part
from podling.model import names
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
OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
IMMUTABLE = "field is immutable"


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
        if sorted(new.spec.scopes) != sorted(old.spec.scopes):
            causes.append(invalid("spec.scopes", new.spec.scopes, IMMUTABLE))
        if new.spec.scope_selector != old.spec.scope_selector:
            causes.append(invalid("spec.scopeSelector", new.spec.scope_selector, IMMUTABLE))
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
        yield from all_invalid(where, name, names.qualified_name(name))
        if "/" not in name and name not in RESOURCES and not name.startswith(HUGE_PAGES):
            yield invalid(where, name, "must be a standard resource type or fully qualified")
            yield invalid(where, name, "must be a standard resource for quota")
        if amount.nanos < 0:
            yield invalid(where, amount, "must be greater than or equal to 0")
        elif amount.nanos % 10**9 and not name.endswith(("cpu", "memory", "storage")):
            yield invalid(where, amount, "must be an integer")


def _validate_scopes(spec: ResourceQuotaSpec) -> Iterator[Cause]:
    for scope in spec.scopes:
        if scope not in SCOPES:
            yield invalid("spec.scopes", spec.scopes, "unsupported scope")
        for name in spec.hard:
            if not _applies(scope, name):
                yield invalid("spec.scopes", spec.scopes, "unsupported scope applied to resource")
    if any(set(pair) <= set(spec.scopes) for pair in OPPOSITES):
        yield invalid("spec.scopes", spec.scopes, "conflicting scopes")


def _validate_scope_selector(spec: ResourceQuotaSpec) -> Iterator[Cause]:
    if spec.scope_selector is None:
        return
    path = "spec.scopeSelector.matchExpressions"
    for i, requirement in enumerate(spec.scope_selector.match_expressions):
        if requirement.scope_name not in SCOPES:
            yield invalid(f"{path}[{i}].scopeName", requirement.scope_name, "unsupported scope")
        for name in spec.hard:
            if not _applies(requirement.scope_name, name):
                what = "unsupported scope applied to resource"
                yield invalid(path, spec.scope_selector, what)
        yield from _validate_requirement(requirement, f"{path}[{i}]")


def _validate_requirement(requirement: ScopedResourceSelectorRequirement, path: str) -> Iterator[Cause]:
    operator, scope = requirement.operator, requirement.scope_name
    if scope in ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating") and operator != "Exists":
        yield invalid(
            f"{path}.operator",
            operator,
            "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
            "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        )
    if operator not in OPERATORS:
        yield not_supported(f"{path}.operator", operator, OPERATORS)
    elif operator in ("In", "NotIn") and not requirement.values:
        yield required(f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and requirement.values:
        why = "must be no value when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden(f"{path}.values", why)


def _applies(scope: str, resource: str) -> bool:
    """Whether a quota of `resource` can be narrowed to `scope`: only pods have scopes."""
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    pods = {"pods", *COMPUTE, *(f"{side}.{name}" for side in ("limits", "requests") for name in COMPUTE)}
    return scope not in SCOPES or resource in pods
