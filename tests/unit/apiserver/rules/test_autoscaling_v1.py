"""R-SYS-1: autoscaling/v1 and v2 of one HorizontalPodAutoscaler, there and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.rules.autoscaling_v1 import (
    BEHAVIOR,
    CONDITIONS,
    CURRENT_METRICS,
    KEPT,
    METRICS,
    to_v1,
    to_v2,
)
from podling.model.codec.json import encode, from_data, to_data
from podling.model.types.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerV1

TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
SELECTED = {"name": "m", "selector": {"matchLabels": {"Aa": "Bb"}}}


def newer(**spec: Any) -> HorizontalPodAutoscaler:
    body = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec}}
    return from_data(body, HorizontalPodAutoscaler)


def older(**annotations: str) -> HorizontalPodAutoscaler:
    """What annotations of v1 say, in v2."""
    names = {"metrics": METRICS, "behavior": BEHAVIOR, "conditions": CONDITIONS, "current": CURRENT_METRICS}
    kept = {names[name]: text for name, text in annotations.items()}
    return to_v2(from_data({"metadata": {"annotations": kept}}, HorizontalPodAutoscalerV1))


AMOUNTS = st.sampled_from(["1", "100m", "2Ki"])
AVERAGE = st.fixed_dictionaries({"type": st.just("AverageValue"), "averageValue": AMOUNTS})
VALUE = st.fixed_dictionaries({"type": st.just("Value"), "value": AMOUNTS})
PERCENT = st.fixed_dictionaries({"type": st.just("Utilization"), "averageUtilization": st.integers(1, 100)})
LOCAL = st.sampled_from(["memory", "ephemeral-storage"])


def source(type_: str, **parts: Any) -> st.SearchStrategy[dict[str, Any]]:
    name = f"{type_[0].lower()}{type_[1:]}"
    return st.fixed_dictionaries({"type": st.just(type_), name: st.fixed_dictionaries(parts)})


MADE = st.lists(
    st.one_of(
        source("Object", describedObject=st.just(TARGET), metric=st.just(SELECTED), target=VALUE | AVERAGE),
        source("External", metric=st.just(SELECTED), target=VALUE | AVERAGE),
        source("Pods", metric=st.just(SELECTED), target=AVERAGE),
        source("Resource", name=LOCAL, target=AVERAGE | PERCENT),
        source("ContainerResource", name=LOCAL, container=st.just("c"), target=AVERAGE | PERCENT),
    ),
    min_size=1,
    max_size=5,
)


@given(MADE, st.none() | st.integers(1, 100))
def test_every_metric_comes_back(metrics: list[dict[str, Any]], percent: int | None) -> None:
    cpu = {"type": "Utilization", "averageUtilization": percent}
    last = [{"type": "Resource", "resource": {"name": "cpu", "target": cpu}}] if percent else []
    scaler = newer(metrics=metrics + last)
    shown = to_v1(scaler)
    assert shown.spec.target_cpu_utilization_percentage == percent
    assert encode(to_v2(shown)) == encode(scaler)
    assert not KEPT & to_v2(shown).metadata.annotations.keys()


def test_behavior_is_kept_by_the_names_that_go_has() -> None:
    scaler = newer(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}})
    text = to_v1(scaler).metadata.annotations[BEHAVIOR]
    assert text == (
        '{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":null,'
        '"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":2}],"Tolerance":null},"ScaleDown":null}'
    )
    assert older(behavior=text).spec.behavior == scaler.spec.behavior


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "bad",
        "[1]",
        '[{"type":1}]',
        "[" * 5000,
    ],
)
def test_what_is_not_of_the_form_says_nothing(text: str) -> None:
    seen = older(metrics=text, behavior=text, conditions=text, current=text)
    assert [to_data(metric) for metric in seen.spec.metrics] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }
    ]
    assert (seen.spec.behavior, seen.status.conditions, seen.status.current_metrics) == (None, [], [])


def test_fields_are_read_in_any_case_but_labels_are_not_fields() -> None:
    pods = '{"MetricName":"m","targetaveragevalue":1,"Selector":{"MatchLabels":{"Aa":"b"}}}'
    text = f'[{{"TYPE":"Pods","Pods":{pods}}}]'
    (metric,) = older(metrics=text).spec.metrics
    assert metric.pods is not None and metric.pods.metric.selector is not None
    assert metric.pods.metric.selector.match_labels == {"Aa": "b"}
    assert metric.pods.target.type == "AverageValue"


def test_conditions_are_written_as_html_wants_them() -> None:
    scaler = newer()
    scaler.status = from_data({"conditions": [{"type": "x<&>", "status": "True"}]}, type(scaler.status))
    text = to_v1(scaler).metadata.annotations[CONDITIONS]
    assert text.startswith('[{"type":"x\\u003c\\u0026\\u003e","status":"True","lastTransitionTime":null')
    assert older(conditions=text).status.conditions == scaler.status.conditions


def test_a_metric_that_a_client_got_wrong_is_seen_to_be_wrong() -> None:
    """Both kinds of target at once: validation has to see them."""
    both = '{"name":"cpu","targetAverageUtilization":5,"targetAverageValue":"4"}'
    text = f'[{{"type":"Resource","resource":{both}}}]'
    (metric,) = older(metrics=text).spec.metrics
    assert metric.resource is not None
    assert (metric.resource.target.average_utilization, str(metric.resource.target.average_value)) == (5, "4")
