"""HorizontalPodAutoscalers in both versions, which show the same stored objects, those of autoscaling/v2."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import AGE, NAME, NONE, UNKNOWN, age
from podling.apiserver.kinds.kind import Column, Controlled, Status, View
from podling.apiserver.rules import metadata
from podling.apiserver.rules.autoscaling import SOURCES, validate_spec, validate_status
from podling.apiserver.rules.autoscaling_v1 import (
    DEFAULT_UTILIZATION,
    cpu_metric,
    to_v1,
    to_v2,
    without_kept,
)
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.autoscaling import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerV1,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricSpec,
    MetricStatus,
)

MOST_METRICS = 2
"""Metrics that a row shows."""
COLUMNS = (
    NAME,
    Column("Reference", description="What is scaled."),
    Column("Targets", description="How much there is of each metric, and how much is aimed at."),
    Column("MinPods", description="The fewest pods."),
    Column("MaxPods", description="The most pods."),
    Column("Replicas", description="How many pods there are."),
    AGE,
)


class HorizontalPodAutoscalers(Controlled[HorizontalPodAutoscaler]):
    resource = resource_of(HorizontalPodAutoscaler)
    judges_prefix_again = False
    has_generation = False
    subresources = {"status": Status(lambda new, old: validate_status(new.status))}
    columns = COLUMNS

    def default(self, obj: HorizontalPodAutoscaler) -> None:
        spec = obj.spec
        obj.metadata.annotations = without_kept(obj.metadata.annotations)
        spec.min_replicas = 1 if spec.min_replicas is None else spec.min_replicas
        spec.metrics = spec.metrics or [cpu_metric(DEFAULT_UTILIZATION)]
        if spec.behavior is not None:
            spec.behavior = HorizontalPodAutoscalerBehavior(
                _filled(spec.behavior.scale_up, _scale_up()), _filled(spec.behavior.scale_down, _scale_down())
            )

    def validate(self, obj: HorizontalPodAutoscaler) -> list[Cause]:
        return [*metadata.validate(obj.metadata), *validate_spec(obj.spec, "spec")]

    def row(self, obj: HorizontalPodAutoscaler, now: datetime) -> list[Any]:
        spec, target = obj.spec, obj.spec.scale_target_ref
        return [
            obj.metadata.name,
            f"{target.kind}/{target.name}",
            _metrics_text(spec.metrics, obj.status.current_metrics),
            "<unset>" if spec.min_replicas is None else str(spec.min_replicas),
            spec.max_replicas,
            obj.status.current_replicas,
            age(obj.metadata.creation_timestamp, now),
        ]


def _scale_up() -> HPAScalingRules:
    """To four pods more or twice as many in 15 seconds, at once."""
    policies = [HPAScalingPolicy("Pods", 4, 15), HPAScalingPolicy("Percent", 100, 15)]
    return HPAScalingRules(stabilization_window_seconds=0, select_policy="Max", policies=policies)


def _scale_down() -> HPAScalingRules:
    """To the fewest in 15 seconds, as soon as the controller's own window allows."""
    return HPAScalingRules(select_policy="Max", policies=[HPAScalingPolicy("Percent", 100, 15)])


def _filled(rules: HPAScalingRules | None, defaults: HPAScalingRules) -> HPAScalingRules:
    if rules is None:
        return defaults
    said = {name: value for name, value in msgspec.structs.asdict(rules).items() if value is not None}
    return msgspec.structs.replace(defaults, **said)


def _metrics_text(metrics: Sequence[MetricSpec], statuses: Sequence[MetricStatus]) -> str:
    """`cpu: 20%/80%, 5/100m (avg) + 1 more...`: each metric beside the status of the same place."""
    shown = []
    for i, metric in enumerate(metrics[:MOST_METRICS]):
        name = next(name for name, type_ in SOURCES.items() if type_ == metric.type)
        said = getattr(statuses[i], name) if i < len(statuses) else None
        shown.append(_metric_text(name, getattr(metric, name), said))
    more = len(metrics) - MOST_METRICS
    return (", ".join(shown) + (f" + {more} more..." if more > 0 else "")) or NONE


def _metric_text(name: str, source: Any, status: Any) -> str:
    """Where a status has no amount, Kubernetes says `<nil>` in some places and `<unknown>` in others."""
    wanted, current = source.target, status and status.current
    average = UNKNOWN if current is None else str(current.average_value or "<nil>")
    match name:
        case "pods":
            return f"{average}/{wanted.average_value}"
        case "object" | "external" if wanted.average_value is not None:
            return f"{average.replace('<nil>', UNKNOWN)}/{wanted.average_value} (avg)"
        case "object" | "external":
            return f"{UNKNOWN if current is None else current.value or '<nil>'}/{wanted.value}"
        case _ if wanted.average_value is not None:
            return f"{source.name}: {average}/{wanted.average_value}"
    percent = current and current.average_utilization
    return f"{source.name}: {UNKNOWN if percent is None else f'{percent}%'}/{wanted.average_utilization}%"


class HorizontalPodAutoscalersV1(View[HorizontalPodAutoscalerV1, HorizontalPodAutoscaler]):
    """autoscaling/v1, which knows of the CPU and keeps the rest in annotations."""

    resource = resource_of(HorizontalPodAutoscalerV1)
    stored = HorizontalPodAutoscalers()
    subresources = HorizontalPodAutoscalers.subresources
    columns = COLUMNS

    def default(self, obj: HorizontalPodAutoscalerV1) -> None:
        obj.spec.min_replicas = 1 if obj.spec.min_replicas is None else obj.spec.min_replicas

    def to_stored(self, obj: HorizontalPodAutoscalerV1) -> HorizontalPodAutoscaler:
        return to_v2(obj)

    def from_stored(self, obj: HorizontalPodAutoscaler) -> HorizontalPodAutoscalerV1:
        return to_v1(obj)
