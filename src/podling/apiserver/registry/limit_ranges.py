"""LimitRanges: what containers and pods of a namespace may ask for, and what they get without asking."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.columns import CREATED_AT, NAME
from podling.apiserver.registry.container.resource_validation import (
    overcommits,
    validate_name,
    validate_standard,
)
from podling.apiserver.registry.field import all_invalid, duplicate, forbidden, invalid, required
from podling.apiserver.registry.kind import Kind
from podling.model import names
from podling.model.errors import Cause
from podling.model.limit_range import LimitRange, LimitRangeItem
from podling.model.quantity import Quantity
from podling.model.scheme import resource_of

TYPES = ("Container", "PersistentVolumeClaim", "Pod")
ONE = Quantity("1")


class LimitRanges(Kind[LimitRange]):
    resource = resource_of(LimitRange)
    creates_on_update = True
    columns = (NAME, CREATED_AT)

    def default(self, obj: LimitRange) -> None:
        for item in obj.spec.limits:
            if item.type == "Container":
                item.default = {**item.max, **item.default}
                item.default_request = {**item.min, **item.default, **item.default_request}

    def validate(self, obj: LimitRange) -> list[Cause]:
        causes = metadata.validate(obj.metadata)
        seen: set[str] = set()
        for i, item in enumerate(obj.spec.limits):
            path = f"spec.limits[{i}]"
            causes += _validate_type(item.type, f"{path}.type")
            if item.type in seen:
                causes.append(duplicate(f"{path}.type", item.type))
            seen.add(item.type)
            causes += _validate_item(item, path)
        return causes

    def validate_update(self, new: LimitRange, old: LimitRange) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: LimitRange, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]


def _validate_type(type: str, path: str) -> Iterator[Cause]:
    yield from all_invalid(path, type, names.qualified_name(type))
    if type and "/" not in type and type not in TYPES:
        yield invalid(path, type, "must be a standard limit type or fully qualified")


def _validate_item(item: LimitRangeItem, path: str) -> Iterator[Cause]:
    for wire, amounts in (
        ("max", item.max),
        ("min", item.min),
        ("default", item.default),
        ("defaultRequest", item.default_request),
        ("maxLimitRequestRatio", item.max_limit_request_ratio),
    ):
        if item.type != "Pod" or not wire.startswith("default"):
            for name in amounts:
                yield from _validate_name(name, f"{path}.{wire}[{name}]", item.type)
    if item.type == "Pod":
        if item.default:
            yield forbidden(f"{path}.default", "may not be specified when `type` is 'Pod'")
        if item.default_request:
            yield forbidden(f"{path}.defaultRequest", "may not be specified when `type` is 'Pod'")
    if item.type == "PersistentVolumeClaim" and not {"storage"} & (item.min.keys() | item.max.keys()):
        yield required(
            f"{path}.limits", "either minimum or maximum storage value is required, but neither was provided"
        )
    everything = (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio)
    for name in sorted(set().union(*everything)):
        yield from _validate_amounts(item, name, path)


def _validate_name(name: str, path: str, type: str) -> Iterator[Cause]:
    """What is bounded: of pods and containers, what they can request."""
    if type in ("Container", "Pod"):
        yield from validate_name(name, path)
    else:
        yield from validate_standard(name, path)


def _validate_amounts(item: LimitRangeItem, name: str, path: str) -> Iterator[Cause]:
    """Smallest, default request, default and largest must be in that order."""
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
    if not overcommits(name) and default is not None and request is not None and default != request:
        why = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", request, why)
    yield from _validate_ratio(item.max_limit_request_ratio.get(name), least, most, name, path)


def _validate_ratio(
    ratio: Quantity | None, least: Quantity | None, most: Quantity | None, name: str, path: str
) -> Iterator[Cause]:
    if ratio is None:
        return
    where = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio < ONE:
        yield invalid(where, ratio, f"ratio {ratio} is less than 1")
    if least and most and ratio.nanos * least.nanos > most.nanos * ONE.nanos:
        widest = most.nanos / least.nanos
        yield invalid(where, ratio, f"ratio {ratio} is greater than max/min = {widest:f}")
