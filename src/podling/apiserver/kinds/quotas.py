"""ResourceQuotas, which limit what all objects of a namespace use together, and LimitRanges, which bound
single containers, pods and claims of a namespace and give them defaults.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import AGE, NAME, UNPRINTED, age
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.container.resources import (
    overcommits,
    validate_name,
    validate_quantity,
    validate_standard,
)
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    duplicate,
    forbidden,
    internal,
    invalid,
    required,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.rules.defaults import default_amounts
from podling.model.scheme import resource_of
from podling.model.types.core import (
    LimitRange,
    LimitRangeItem,
    ResourceQuota,
    ResourceQuotaSpec,
)

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
"""The resources that a quota with this scope can count."""
MISAPPLIED = "unsupported scope applied to resource"

TYPES = ("Container", "PersistentVolumeClaim", "Pod")
ONE = Quantity("1")


def _validate_status(new: ResourceQuota, old: ResourceQuota) -> Iterator[Cause]:
    yield from _validate_hard(new.status.hard, "status.hard")
    yield from _validate_hard(new.status.used, "status.used")


class ResourceQuotas(Controlled[ResourceQuota]):
    resource = resource_of(ResourceQuota)
    judges_prefix_again = False
    has_generation = False
    returns_deleted = True
    subresources = {"status": Status(_validate_status)}
    columns = (
        NAME,
        Column("Request", description="What is used of what may be requested."),
        Column("Limit", description="What is used of the limits that may be set."),
        AGE,
    )

    def default(self, obj: ResourceQuota) -> None:
        default_amounts(obj.spec.hard, obj.status.hard, obj.status.used)

    def validate(self, obj: ResourceQuota) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata),
            *_validate_hard(obj.spec.hard, "spec.hard"),
            *_validate_scopes(obj.spec),
            *_validate_scope_selector(obj.spec),
        ]

    def validate_update(self, new: ResourceQuota, old: ResourceQuota) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if set(new.spec.scopes) != set(old.spec.scopes):
            causes.append(invalid("spec.scopes", new.spec.scopes or None, IMMUTABLE))
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


def _validate_hard(amounts: dict[str, Quantity], path: str) -> Iterator[Cause]:
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
    judged: set[str] = set()
    for scope in scopes:
        if scope not in SCOPES:
            yield unsupported
        if scope not in judged:
            yield from (misapplied for _ in _misapplied(scope, spec.hard))
        judged.add(scope)
    if _conflict(scopes):
        yield invalid(path, scopes, "conflicting scopes")


def _validate_scope_selector(spec: ResourceQuotaSpec) -> Iterator[Cause]:
    """The path has no index of the requirement, as in Kubernetes."""
    if spec.scope_selector is None:
        return
    path, requirements = "spec.scopeSelector.matchExpressions", spec.scope_selector.match_expressions
    misapplied = invalid(path, internal(spec.scope_selector), MISAPPLIED)
    judged: set[str] = set()
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        if scope not in judged:
            yield from (misapplied for _ in _misapplied(scope, spec.hard))
        judged.add(scope)
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
    if _conflict([requirement.scope_name for requirement in requirements]):
        yield invalid(path, spec.scopes, "conflicting scopes")


def _conflict(scopes: list[str]) -> bool:
    return any(set(pair) <= set(scopes) for pair in OPPOSITES)


def _misapplied(scope: str, hard: Iterable[str]) -> list[str]:
    """Resources in `hard` that a quota with `scope` cannot count."""
    applicable = APPLICABLE.get(scope)
    return (
        [] if applicable is None else [name for name in hard if _is_counted(name) and name not in applicable]
    )


class LimitRanges(Kind[LimitRange]):
    resource = resource_of(LimitRange)
    creates_on_update = True
    columns = UNPRINTED

    def default(self, obj: LimitRange) -> None:
        # As in Kubernetes, one without a name has one all the same.
        if not obj.metadata.generate_name:
            obj.metadata.name = obj.metadata.name or str(uuid.uuid4())
        for item in obj.spec.limits:
            default_amounts(item.max, item.min, item.default, item.default_request)
            default_amounts(item.max_limit_request_ratio)
            if item.type == "Container":
                item.default = {**item.max, **item.default}
                item.default_request = {**item.min, **item.default, **item.default_request}

    def validate(self, obj: LimitRange) -> list[Cause]:
        causes = metadata.validate(obj.metadata)
        seen: set[str] = set()
        for i, item in enumerate(obj.spec.limits):
            path = f"spec.limits[{i}]"
            faults = names.qualified_name(item.type)
            causes += all_invalid(f"{path}.type", item.type, faults)
            if not faults and "/" not in item.type and item.type not in TYPES:
                why = "must be a standard limit type or fully qualified"
                causes.append(invalid(f"{path}.type", item.type, why))
            if item.type in seen:
                causes.append(duplicate(f"{path}.type", item.type))
            seen.add(item.type)
            causes += _validate_item(item, path)
        return causes

    def row(self, obj: LimitRange, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]


def _validate_item(item: LimitRangeItem, path: str) -> Iterator[Cause]:
    # Of pods and containers: a resource that they can request.
    rule = validate_name if item.type in ("Container", "Pod") else validate_standard
    defaults = {"default": item.default, "defaultRequest": item.default_request}
    judged = {"max": item.max, "min": item.min, **(defaults if item.type != "Pod" else {})}
    for wire, amounts in judged.items():
        for name in amounts:
            yield from rule(name, f"{path}.{wire}[{name}]")
    if item.type == "Pod":
        for wire, amounts in defaults.items():
            if amounts:
                yield forbidden(f"{path}.{wire}", "may not be specified when `type` is 'Pod'")
    if item.type == "PersistentVolumeClaim" and not {"storage"} & (item.min.keys() | item.max.keys()):
        yield required(
            f"{path}.limits", "either minimum or maximum storage value is required, but neither was provided"
        )
    for name in item.max_limit_request_ratio:
        yield from rule(name, f"{path}.maxLimitRequestRatio[{name}]")
    if item.type == "Pod":
        item = msgspec.structs.replace(item, default={}, default_request={})
    everything = (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio)
    for name in sorted(set().union(*everything)):
        yield from _validate_amounts(item, name, path)


def _validate_amounts(item: LimitRangeItem, name: str, path: str) -> Iterator[Cause]:
    """Faults of the order min ≤ defaultRequest ≤ default ≤ max."""
    least, most = item.min.get(name), item.max.get(name)
    default, request = item.default.get(name), item.default_request.get(name)
    for small, what, large, than, blamed, value in (
        (least, "min value", most, "max value", "min", least),
        (least, "min value", request, "default request value", "defaultRequest", request),
        (request, "default request value", most, "max value", "defaultRequest", request),
        (request, "default request value", default, "default limit value", "defaultRequest", request),
        (least, "min value", default, "default value", "default", least),
        (default, "default value", most, "max value", "default", most),
    ):
        if small is not None and large is not None and small > large:
            yield invalid(f"{path}.{blamed}[{name}]", value, f"{what} {small} is greater than {than} {large}")
    ratio, where = item.max_limit_request_ratio.get(name), f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < ONE:
        yield invalid(where, ratio, f"ratio {ratio} is less than 1")
    if ratio is not None and least and most and ratio.nanos * least.nanos > most.nanos * ONE.nanos:
        widest = most.nanos / least.nanos
        yield invalid(where, ratio, f"ratio {ratio} is greater than max/min = {widest:f}")
    if not overcommits(name) and default is not None and request is not None and default != request:
        why = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", request, why)
