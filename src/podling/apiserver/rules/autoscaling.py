"""Validation of HorizontalPodAutoscalers, which both versions have in the form of autoscaling/v2."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.container.resources import validate_name
from podling.apiserver.rules.field import (
    all_invalid,
    at_least,
    choice,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.model import names
from podling.model.codec.fields import wire_name
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.types.autoscaling import (
    CrossVersionObjectReference,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
)

SOURCES = {
    "object": "Object",
    "external": "External",
    "pods": "Pods",
    "resource": "Resource",
    "container_resource": "ContainerResource",
}
"""Where a metric comes from: the attribute that says more, and what its `type` calls it."""

TARGETS = ("Utilization", "Value", "AverageValue")
SELECT_POLICIES = frozenset({"Max", "Min", "Disabled"})
POLICIES = frozenset({"Pods", "Percent"})
LONGEST_PERIOD, LONGEST_WINDOW = 1800, 3600
"""Seconds."""


def validate_spec(spec: HorizontalPodAutoscalerSpec, path: str) -> Iterator[Cause]:
    least = 1 if spec.min_replicas is None else spec.min_replicas
    if least < 1:
        yield invalid(f"{path}.minReplicas", least, "must be greater than or equal to 1")
    if spec.max_replicas == 0:
        yield required(f"{path}.maxReplicas", "must be set and greater than 0")
    elif spec.max_replicas < 0:
        yield invalid(f"{path}.maxReplicas", spec.max_replicas, "must be greater than or equal to 1")
    if spec.max_replicas < least:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid(f"{path}.maxReplicas", spec.max_replicas, why)
    yield from _validate_reference(spec.scale_target_ref, f"{path}.scaleTargetRef")
    yield from validate_group(spec.scale_target_ref, f"{path}.scaleTargetRef.apiVersion")
    for i, metric in enumerate(spec.metrics):
        yield from _validate_metric(metric, f"{path}.metrics[{i}]")
    if least == 0 and not any(metric.type in ("Object", "External") for metric in spec.metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(f"{path}.metrics", why)
    if spec.behavior is not None:
        yield from _validate_rules(spec.behavior.scale_up, f"{path}.behavior.scaleUp")
        yield from _validate_rules(spec.behavior.scale_down, f"{path}.behavior.scaleDown")


def _validate_reference(reference: CrossVersionObjectReference, path: str) -> Iterator[Cause]:
    for name, value in (("kind", reference.kind), ("name", reference.name)):
        if not value:
            yield required(f"{path}.{name}")
        yield from all_invalid(f"{path}.{name}", value, names.path_segment(value))


def validate_group(reference: CrossVersionObjectReference, path: str) -> Iterator[Cause]:
    """What is scaled has an API group, unless it is of the one kind that has none."""
    api_version = reference.api_version
    group, slash, _ = api_version.partition("/")
    if api_version.count("/") > 1:
        yield from _validate_group_version(api_version, path)
    elif not (group and slash) and reference.kind != "ReplicationController":
        yield invalid(path, api_version, "apiVersion must specify API group")


def _validate_group_version(api_version: str, path: str) -> Iterator[Cause]:
    if api_version.count("/") > 1:
        yield invalid(path, api_version, f"unexpected GroupVersion string: {api_version}")


def _validate_metric(metric: MetricSpec, path: str) -> Iterator[Cause]:
    if not metric.type:
        yield required(f"{path}.type", "must specify a metric source type")
    if metric.type not in SOURCES.values():
        yield not_supported(f"{path}.type", metric.type, frozenset(SOURCES.values()))
    present = [name for name in SOURCES if getattr(metric, name) is not None]
    for name in present[:1]:
        yield from _validate_source(metric, name, f"{path}.{wire_name(name)}")
    for name, type_ in SOURCES.items():
        if type_ == metric.type and name not in present:
            yield required(
                f"{path}.{wire_name(name)}", "must populate information for the given metric source"
            )
    if metric.type not in SOURCES.values():
        # Kubernetes looks twice.
        yield not_supported(f"{path}.type", metric.type, frozenset(SOURCES.values()))
    for name in present if len(present) > 1 else ():
        if SOURCES[name] != metric.type:
            yield forbidden(f"{path}.{wire_name(name)}", "must populate the given metric source only")


def _validate_source(metric: MetricSpec, name: str, path: str) -> Iterator[Cause]:
    source = getattr(metric, name)
    if name == "object":
        described = source.described_object
        yield from _validate_reference(described, f"{path}.describedObject")
        yield from _validate_group_version(described.api_version, f"{path}.describedObject.apiVersion")
    if name in ("object", "external", "pods"):
        yield from _validate_identifier(source.metric, f"{path}.metric")
    elif not source.name:
        yield required(f"{path}.name", "must specify a resource name")
    elif name == "container_resource":
        yield from validate_name(source.name, f"{path}.name")
    if name == "container_resource":
        if not source.container:
            yield required(f"{path}.container", "must specify a container")
        else:
            faults = names.dns1123_label(source.container)
            yield from all_invalid(f"{path}.container", source.container, faults)
    yield from _validate_target(source.target, f"{path}.target")
    yield from _validate_amounts(source.target, name, f"{path}.target")


def _validate_identifier(identifier: MetricIdentifier, path: str) -> Iterator[Cause]:
    if not identifier.name:
        yield required(f"{path}.name", "must specify a metric name")
    yield from all_invalid(f"{path}.name", identifier.name, names.path_segment(identifier.name))


def _validate_target(target: MetricTarget, path: str) -> Iterator[Cause]:
    if not target.type:
        yield required(f"{path}.type", "must specify a metric target type")
    if target.type not in TARGETS:
        why = "must be either Utilization, Value, or AverageValue"
        yield invalid(f"{path}.type", target.type, why)
    for name, amount in (("value", target.value), ("averageValue", target.average_value)):
        if amount is not None and amount <= Quantity():
            yield invalid(f"{path}.{name}", amount, "must be positive")
    if target.average_utilization is not None and target.average_utilization < 1:
        yield invalid(f"{path}.averageUtilization", target.average_utilization, "must be greater than 0")


def _validate_amounts(target: MetricTarget, source: str, path: str) -> Iterator[Cause]:
    """Which of its values a target must have, and which not together."""
    has_value, has_average = target.value is not None, target.average_value is not None
    has_percent = target.average_utilization is not None
    match source:
        case "object":
            if not (has_value or has_average):
                yield required(f"{path}.averageValue", "must set either a target value or averageValue")
        case "external":
            if not (has_value or has_average):
                why = "must set either a target value for metric or a per-pod target"
                yield required(f"{path}.averageValue", why)
            if has_value and has_average:
                why = "may not set both a target value for metric and a per-pod target"
                yield forbidden(f"{path}.value", why)
        case "pods":
            if not has_average:
                yield required(f"{path}.averageValue", "must specify a positive target averageValue")
        case _:
            if not (has_percent or has_average):
                why = "must set either a target raw value or a target utilization"
                yield required(f"{path}.averageUtilization", why)
            if has_percent and has_average:
                why = "may not set both a target raw value and a target utilization"
                yield forbidden(f"{path}.averageValue", why)


def _validate_rules(rules: HPAScalingRules | None, path: str) -> Iterator[Cause]:
    if rules is None:
        return
    window = rules.stabilization_window_seconds
    if window is not None and window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > LONGEST_WINDOW:
        why = f"must be less than or equal to {LONGEST_WINDOW}"
        yield invalid(f"{path}.stabilizationWindowSeconds", window, why)
    yield from choice(f"{path}.selectPolicy", rules.select_policy, SELECT_POLICIES)
    if not rules.policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for i, policy in enumerate(rules.policies or ()):
        yield from _validate_policy(policy, f"{path}.policies[{i}]")
    if rules.tolerance is not None and rules.tolerance < Quantity():
        yield invalid(f"{path}.tolerance", rules.tolerance, "must be greater than or equal to 0")


def _validate_policy(policy: HPAScalingPolicy, path: str) -> Iterator[Cause]:
    if policy.type not in POLICIES:
        yield not_supported(f"{path}.type", policy.type, POLICIES)
    for name, amount in (("value", policy.value), ("periodSeconds", policy.period_seconds)):
        if amount <= 0:
            yield invalid(f"{path}.{name}", amount, "must be greater than zero")
    if policy.period_seconds > LONGEST_PERIOD:
        why = f"must be less than or equal to {LONGEST_PERIOD}"
        yield invalid(f"{path}.periodSeconds", policy.period_seconds, why)


def validate_status(status: HorizontalPodAutoscalerStatus) -> list[Cause]:
    return [
        *at_least("status.currentReplicas", status.current_replicas, 0),
        *at_least("status.desiredReplicas", status.desired_replicas, 0),
    ]
