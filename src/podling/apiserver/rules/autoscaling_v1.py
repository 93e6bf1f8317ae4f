"""autoscaling/v1 of HorizontalPodAutoscalers, as autoscaling/v2 has them and back.

v1 has a field for the target of the CPU alone. What v2 says more is kept in annotations, as JSON that has the
form of metrics of an older time, or, for the behavior, Go's names of the fields. As in Kubernetes, what is
not of that form says nothing, the names of its fields are read in any case, and v2 never shows these
annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from podling.apiserver.rules.field import internal
from podling.model.codec import json
from podling.model.codec.fields import Int32, Part, Shape, always, fields_of, shape_of
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.time import TimeError
from podling.model.types.autoscaling import (
    ContainerResourceMetricSource,
    ContainerResourceMetricStatus,
    CrossVersionObjectReference,
    CrossVersionObjectReferenceV1,
    ExternalMetricSource,
    ExternalMetricStatus,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerSpecV1,
    HorizontalPodAutoscalerStatus,
    HorizontalPodAutoscalerStatusV1,
    HorizontalPodAutoscalerV1,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricSource,
    ResourceMetricStatus,
)
from podling.model.types.meta import LabelSelector

T = TypeVar("T")
M = TypeVar("M", bound=Part)

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
KEPT = frozenset({METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS})
DEFAULT_UTILIZATION = 80
"""Percent of the CPU that is aimed at where no metric is named."""
RESOURCE, CPU = "Resource", "cpu"
UTILIZATION, VALUE, AVERAGE_VALUE = "Utilization", "Value", "AverageValue"
_OBJECT = (("target", "described_object"), ("metric_name", "metric.name"), ("selector", "metric.selector"))
_PODS = (("metric_name", "metric.name"), ("selector", "metric.selector"))
_EXTERNAL = (("metric_name", "metric.name"), ("metric_selector", "metric.selector"))
_NAME = (("name", "name"),)
_CONTAINER = (("name", "name"), ("container", "container"))
_WANTED = (
    ("target_value", "target.value"),
    ("target_average_value", "target.average_value"),
    ("target_average_utilization", "target.average_utilization"),
    ("average_value", "target.average_value"),
)
_CURRENT = (
    ("current_value", "current.value"),
    ("current_average_value", "current.average_value"),
    ("current_average_utilization", "current.average_utilization"),
    ("average_value", "current.average_value"),
)
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
"""What Go writes so inside strings, as HTML wants it."""


class _Object(Part):
    target: CrossVersionObjectReference = always(CrossVersionObjectReference)
    metric_name: str = always(str)
    target_value: Quantity = always(Quantity)
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class _Pods(Part):
    metric_name: str = always(str)
    target_average_value: Quantity = always(Quantity)
    selector: LabelSelector | None = None


class _Resource(Part):
    name: str = always(str)
    target_average_utilization: Int32 | None = None
    target_average_value: Quantity | None = None


class _ContainerResource(_Resource):
    container: str = always(str)


class _External(Part):
    metric_name: str = always(str)
    metric_selector: LabelSelector | None = None
    target_value: Quantity | None = None
    target_average_value: Quantity | None = None


class _Metric(Part):
    type: str = always(str)
    object: _Object | None = None
    pods: _Pods | None = None
    resource: _Resource | None = None
    container_resource: _ContainerResource | None = None
    external: _External | None = None


class _CurrentObject(Part):
    target: CrossVersionObjectReference = always(CrossVersionObjectReference)
    metric_name: str = always(str)
    current_value: Quantity = always(Quantity)
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class _CurrentPods(Part):
    metric_name: str = always(str)
    current_average_value: Quantity = always(Quantity)
    selector: LabelSelector | None = None


class _CurrentResource(Part):
    name: str = always(str)
    current_average_utilization: Int32 | None = None
    current_average_value: Quantity = always(Quantity)


class _CurrentContainerResource(_CurrentResource):
    container: str = always(str)


class _CurrentExternal(Part):
    metric_name: str = always(str)
    metric_selector: LabelSelector | None = None
    current_value: Quantity = always(Quantity)
    current_average_value: Quantity | None = None


class _CurrentMetric(Part):
    type: str = always(str)
    object: _CurrentObject | None = None
    pods: _CurrentPods | None = None
    resource: _CurrentResource | None = None
    container_resource: _CurrentContainerResource | None = None
    external: _CurrentExternal | None = None


class _Source(NamedTuple):
    """Where a metric comes from: its types, and each attribute in v1 with its place in v2."""

    older: type[Part]
    newer: type[Part]
    places: Sequence[tuple[str, str]]


def _source(
    older: type[Part], newer: type[Part], named: Sequence[tuple[str, str]], amounts: Sequence[tuple[str, str]]
) -> _Source:
    has = older.__struct_fields__
    return _Source(older, newer, (*named, *(place for place in amounts if place[0] in has)))


_SOURCES = {
    "object": _source(_Object, ObjectMetricSource, _OBJECT, _WANTED),
    "pods": _source(_Pods, PodsMetricSource, _PODS, _WANTED),
    "resource": _source(_Resource, ResourceMetricSource, _NAME, _WANTED),
    "container_resource": _source(_ContainerResource, ContainerResourceMetricSource, _CONTAINER, _WANTED),
    "external": _source(_External, ExternalMetricSource, _EXTERNAL, _WANTED),
}
_STATUSES = {
    "object": _source(_CurrentObject, ObjectMetricStatus, _OBJECT, _CURRENT),
    "pods": _source(_CurrentPods, PodsMetricStatus, _PODS, _CURRENT),
    "resource": _source(_CurrentResource, ResourceMetricStatus, _NAME, _CURRENT),
    "container_resource": _source(
        _CurrentContainerResource, ContainerResourceMetricStatus, _CONTAINER, _CURRENT
    ),
    "external": _source(_CurrentExternal, ExternalMetricStatus, _EXTERNAL, _CURRENT),
}


def to_v2(obj: HorizontalPodAutoscalerV1) -> HorizontalPodAutoscaler:
    """Shares with `obj` what both versions have alike."""
    spec, status, said = obj.spec, obj.status, obj.metadata.annotations
    target, percent = spec.scale_target_ref, spec.target_cpu_utilization_percentage
    metrics = [_newer(one, MetricSpec, _SOURCES) for one in _read(said, METRICS, list[_Metric]) or ()]
    for metric in metrics:
        _say_type_of_target(metric)
    if percent is not None or not metrics:
        metrics.append(cpu_metric(DEFAULT_UTILIZATION if percent is None else percent))
    if (current := _read(said, CURRENT_METRICS, list[_CurrentMetric])) is not None:
        loads = [_newer(one, MetricStatus, _STATUSES) for one in current]
    else:
        load = status.current_cpu_utilization_percentage
        now = ResourceMetricStatus(name=CPU, current=MetricValueStatus(average_utilization=load))
        loads = [] if load is None else [MetricStatus(type=RESOURCE, resource=now)]
    behavior = _read(said, BEHAVIOR, HorizontalPodAutoscalerBehavior) or HorizontalPodAutoscalerBehavior()
    for rules in (behavior.scale_up, behavior.scale_down):
        if rules is not None and rules.policies is None:
            # Kubernetes checks what the annotation says before it fills in the defaults.
            rules.policies = []
    return HorizontalPodAutoscaler(
        metadata=replace(obj.metadata, annotations=without_kept(said)),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=CrossVersionObjectReference(target.kind, target.name, target.api_version),
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            metrics=metrics,
            behavior=behavior if behavior.scale_up or behavior.scale_down else None,
        ),
        status=HorizontalPodAutoscalerStatus(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_metrics=loads,
            conditions=_read(said, CONDITIONS, list[HorizontalPodAutoscalerCondition]) or [],
        ),
    )


def to_v1(obj: HorizontalPodAutoscaler) -> HorizontalPodAutoscalerV1:
    """Shares with `obj` what both versions have alike."""
    spec, status, target = obj.spec, obj.status, obj.spec.scale_target_ref
    percents = [_percent(metric) for metric in spec.metrics]
    others = [metric for metric, percent in zip(spec.metrics, percents, strict=True) if percent is None]
    loads = (
        metric.resource.current.average_utilization
        for metric in reversed(status.current_metrics)
        if metric.type == RESOURCE and metric.resource and metric.resource.name == CPU
    )
    kept: Mapping[str, Any] = {
        METRICS: [_older(one, _Metric, _SOURCES) for one in others],
        CURRENT_METRICS: [_older(one, _CurrentMetric, _STATUSES) for one in status.current_metrics],
        CONDITIONS: status.conditions,
        BEHAVIOR: internal(spec.behavior),
    }
    written = {name: json.encode(value).decode().translate(_ESCAPES) for name, value in kept.items() if value}
    return HorizontalPodAutoscalerV1(
        metadata=replace(obj.metadata, annotations=obj.metadata.annotations | written),
        spec=HorizontalPodAutoscalerSpecV1(
            scale_target_ref=CrossVersionObjectReferenceV1(target.kind, target.name, target.api_version),
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            target_cpu_utilization_percentage=next((one for one in percents if one is not None), None),
        ),
        status=HorizontalPodAutoscalerStatusV1(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_cpu_utilization_percentage=next((load for load in loads if load is not None), None),
        ),
    )


def without_kept(annotations: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in annotations.items() if name not in KEPT}


def cpu_metric(percent: int) -> MetricSpec:
    target = MetricTarget(type=UTILIZATION, average_utilization=percent)
    return MetricSpec(type=RESOURCE, resource=ResourceMetricSource(name=CPU, target=target))


def _percent(metric: MetricSpec) -> int | None:
    """What v1 has a field for: the wanted utilization of the CPU, if the metric is of that."""
    if metric.type != RESOURCE or metric.resource is None or metric.resource.name != CPU:
        return None
    return metric.resource.target.average_utilization


def _read(annotations: Mapping[str, str], name: str, type_: type[T]) -> T | None:
    """What the annotation says; None if it says nothing that can be read."""
    if not (text := annotations.get(name)):
        return None
    try:
        data = _by_wire_name(json.decode_data(text), shape_of(cast(Any, type_)))
        said = json.from_data(data, type_)
        for one in said if isinstance(said, list) else ():
            json.settle_times(one)
    except (StatusError, TimeError):
        return None
    return said


def _by_wire_name(data: Any, shape: Shape) -> Any:
    """`data` with the fields of structs named as the types do, whatever their case was."""
    if shape.struct and isinstance(data, dict):
        fields = {wire.lower(): field for wire, field in fields_of(shape.struct).items()}
        return {
            field.wire: _by_wire_name(value, field.shape)
            for name, value in data.items()
            if (field := fields.get(name.lower()))
        }
    if shape.holds is list and shape.item and isinstance(data, list):
        return [_by_wire_name(one, shape.item) for one in data]
    return data


def _newer(metric: Any, type_: type[M], sources: Mapping[str, _Source]) -> M:
    made = type_(type=metric.type)
    for name, source in sources.items():
        if (older := getattr(metric, name)) is not None:
            newer = source.newer()
            for attribute, place in source.places:
                *within, last = place.split(".")
                setattr(reduce(getattr, within, newer), last, getattr(older, attribute))
            setattr(made, name, newer)
    return made


def _older(metric: Any, type_: type[M], sources: Mapping[str, _Source]) -> M:
    made = type_(type=metric.type)
    for name, source in sources.items():
        if (newer := getattr(metric, name)) is not None:
            places = ((attribute, place.split(".")) for attribute, place in source.places)
            values = {attribute: reduce(getattr, place, newer) for attribute, place in places}
            # Of what v2 leaves open, v1 writes some as zero.
            known = {attribute: value for attribute, value in values.items() if value is not None}
            setattr(made, name, source.older(**known))
    return made


def _say_type_of_target(metric: MetricSpec) -> None:
    """v2 says which of its values a target is, which in v1 follows from those that it has."""
    if metric.object:
        target = metric.object.target
        target.type = VALUE if target.average_value is None else AVERAGE_VALUE
        if target.average_value is not None and target.value == Quantity():
            # v1 has no way to leave it out.
            target.value = None
    for source in (metric.pods, metric.external):
        if source:
            source.target.type = AVERAGE_VALUE if source.target.value is None else VALUE
    for resource in (metric.resource, metric.container_resource):
        if resource:
            percent = resource.target.average_utilization
            resource.target.type = AVERAGE_VALUE if percent is None else UTILIZATION
