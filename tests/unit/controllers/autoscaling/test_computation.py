"""R-SYS-8: how many pods metrics ask for, and how many of them an autoscaler takes on or gives up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.controllers.autoscaling.computation import (
    MOST,
    NO_PODS,
    NOT_MEASURED,
    History,
    Measured,
    Proposed,
    Tolerances,
    Unknown,
    by_average,
    by_utilization,
    by_value,
    by_value_of_each,
    decided,
    tolerances_of,
)
from podling.model.codec.json import from_data
from podling.model.types.autoscaling import HorizontalPodAutoscalerSpec
from podling.model.types.pod import Pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOLERANCES = Tolerances()
AGO = "2026-01-02T02:00:00Z"


def pod(
    name: str, phase: str = "Running", ready: str = "True", began: str = AGO, since: str = AGO, **spec: Any
) -> Pod:
    containers = [
        {"name": "a", "resources": {"requests": {"cpu": "100m"}}},
        {"name": "b", "resources": {"requests": {"cpu": "300m"}}},
    ]
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": since}] if ready else []
    data = {
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
        "status": {"phase": phase, "startTime": began, "conditions": conditions},
    }
    return from_data(data, Pod)


def measured(**values: int) -> dict[str, Measured]:
    return {name: Measured(NOW, timedelta(seconds=15), value) for name, value in values.items()}


def asked(
    pods: list[Pod], values: dict[str, int], target: int = 50, current: int = 2, container: str = ""
) -> Proposed:
    return by_utilization(pods, measured(**values), "cpu", container, target, current, TOLERANCES, NOW)


TWO = [pod("p"), pod("q")]


@pytest.mark.parametrize(
    ("pods", "values", "proposed"),
    [
        (TWO, {"p": 400, "q": 400}, Proposed(4, 400, 100)),
        (TWO, {"p": 210, "q": 210}, Proposed(2, 210, 52)),
        (TWO, {"p": 20, "q": 20}, Proposed(1, 20, 5)),
        (TWO, {"p": 400}, Proposed(2, 400, 100)),
        (TWO, {"p": 2000}, Proposed(10, 2000, 500)),
        (TWO, {"p": 20}, Proposed(2, 20, 5)),
        ([*TWO, pod("r", "Pending")], {"p": 400, "q": 400}, Proposed(4, 400, 100)),
        ([*TWO, pod("r", "Failed")], {"p": 400, "q": 400}, Proposed(4, 400, 100)),
        ([*TWO, pod("r", ready="")], {"p": 400, "q": 400, "r": 9}, Proposed(4, 400, 100)),
        (
            [*TWO, pod("r", ready="False", since="2026-01-02T02:00:10Z")],
            {"p": 20, "q": 20, "r": 9000},
            Proposed(1, 20, 5),
        ),
        (
            [*TWO, pod("r", ready="False", since="2026-01-02T03:00:00Z")],
            {"p": 400, "q": 400, "r": 400},
            Proposed(6, 400, 100),
        ),
        (
            [*TWO, pod("r", began="2026-01-02T03:04:00Z", since="2026-01-02T03:04:00Z")],
            {"p": 20, "q": 20, "r": 900},
            Proposed(1, 20, 5),
        ),
        (TWO, {"p": 400, "q": 400, "gone": 7}, Proposed(4, 400, 100)),
    ],
)
def test_the_use_of_what_is_requested(pods: list[Pod], values: dict[str, int], proposed: Proposed) -> None:
    assert asked(pods, values) == proposed


def test_a_container_by_itself() -> None:
    assert asked(TWO, {"p": 100, "q": 100}, container="a") == Proposed(4, 100, 100)
    assert asked([pod("p", resources={"requests": {"cpu": "200m"}})], {"p": 200}, current=1) == Proposed(
        2, 200, 100
    )


@pytest.mark.parametrize(
    ("pods", "values", "container", "why"),
    [
        ([], {"p": 1}, "", NO_PODS),
        (TWO, {}, "", NOT_MEASURED),
        ([pod("p", "Pending")], {"p": 1}, "", NOT_MEASURED),
        (TWO, {"gone": 1}, "", "no metrics returned matched known pods"),
        (TWO, {"p": 1}, "z", "container z not found in Pod p"),
        (
            [pod("p", containers=[{"name": "a"}])],
            {"p": 1},
            "",
            "missing request for cpu in container a of Pod p",
        ),
        (
            [pod("p", initContainers=[{"name": "s", "restartPolicy": "Always"}])],
            {"p": 1},
            "",
            "missing request for cpu in container s of Pod p",
        ),
        (
            [pod("p", containers=[{"name": "a"}], resources={"requests": {"memory": "1"}})],
            {"p": 1},
            "",
            "missing pod-level request for cpu in Pod p",
        ),
    ],
)
def test_what_says_nothing(pods: list[Pod], values: dict[str, int], container: str, why: str) -> None:
    with pytest.raises(Unknown) as told:
        asked(pods, values, container=container)
    assert str(told.value) == why


def test_an_average_of_the_pods() -> None:
    def average(target: int, **values: int) -> Proposed:
        return by_average(TWO, measured(**values), "", target, 2, TOLERANCES, NOW)

    assert average(50, p=100, q=100) == Proposed(4, 100)
    assert average(105, p=100, q=100) == Proposed(2, 100)
    assert average(50, p=200) == Proposed(4, 200)
    assert average(50, p=10) == Proposed(2, 10)


def test_a_value_that_is_not_the_pods_own() -> None:
    assert by_value(TWO, 35, 10, 2, TOLERANCES) == Proposed(7, 35)
    assert by_value(TWO, 10, 10, 2, TOLERANCES) == Proposed(2, 10)
    assert by_value([], 35, 10, 0, TOLERANCES) == Proposed(4, 35)
    assert by_value(TWO, 10**30, 1, 2, TOLERANCES).replicas == MOST
    with pytest.raises(Unknown, match="unable to calculate ready pods: no pods returned"):
        by_value([], 35, 10, 2, TOLERANCES)
    assert by_value_of_each(35, 5, 2, TOLERANCES) == Proposed(7, 18)
    assert by_value_of_each(10, 5, 2, TOLERANCES) == Proposed(2, 5)
    assert by_value_of_each(10, 5, 0, TOLERANCES) == Proposed(2, 0)


def spec(**fields: Any) -> HorizontalPodAutoscalerSpec:
    return from_data({"minReplicas": 1, "maxReplicas": 100, **fields}, HorizontalPodAutoscalerSpec)


def rules(way: str, *policies: tuple[str, int, int], **more: Any) -> dict[str, Any]:
    """A behavior with all that the server fills in."""
    filled = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }
    listed = [{"type": t, "value": v, "periodSeconds": p} for t, v, p in policies]
    said = {**filled, **({"policies": listed} if policies else {}), **more}
    return {"behavior": {"scaleUp": filled, "scaleDown": filled, way: said}}


@pytest.mark.parametrize(
    ("fields", "current", "proposed", "replicas", "able", "limited"),
    [
        ({}, 2, 2, 2, "ReadyForNewScale", "DesiredWithinRange"),
        ({}, 2, 9, 4, "ReadyForNewScale", "ScaleUpLimit"),
        ({"maxReplicas": 3}, 2, 9, 3, "ReadyForNewScale", "TooManyReplicas"),
        ({}, 9, 2, 9, "ScaleDownStabilized", "DesiredWithinRange"),
        (rules("scaleUp", ("Pods", 3, 60)), 2, 9, 5, "ReadyForNewScale", "ScaleUpLimit"),
        (
            rules("scaleUp", ("Pods", 3, 60), ("Percent", 400, 60)),
            2,
            99,
            10,
            "ReadyForNewScale",
            "ScaleUpLimit",
        ),
        (
            rules("scaleUp", ("Pods", 3, 60), ("Percent", 400, 60), selectPolicy="Min"),
            2,
            9,
            5,
            "ReadyForNewScale",
            "ScaleUpLimit",
        ),
        (rules("scaleUp", selectPolicy="Disabled"), 2, 9, 2, "ReadyForNewScale", "ScaleUpLimit"),
        (rules("scaleUp", stabilizationWindowSeconds=60), 2, 9, 2, "ScaleUpStabilized", "DesiredWithinRange"),
        (rules("scaleDown", ("Pods", 3, 60)), 9, 1, 6, "ReadyForNewScale", "ScaleDownLimit"),
        (rules("scaleDown", ("Percent", 35, 60)), 9, 1, 5, "ReadyForNewScale", "ScaleDownLimit"),
        (
            rules("scaleDown", ("Pods", 3, 60), ("Pods", 5, 60), selectPolicy="Min"),
            9,
            1,
            6,
            "ReadyForNewScale",
            "ScaleDownLimit",
        ),
        ({"minReplicas": 4, **rules("scaleDown")}, 9, 1, 4, "ReadyForNewScale", "TooFewReplicas"),
        (
            rules("scaleDown", stabilizationWindowSeconds=300),
            9,
            1,
            9,
            "ScaleDownStabilized",
            "DesiredWithinRange",
        ),
    ],
)
def test_what_is_decided(
    fields: dict[str, Any], current: int, proposed: int, replicas: int, able: str, limited: str
) -> None:
    history = History()
    history.begin(current, NOW)
    decision = decided(spec(**fields), history, current, proposed, NOW + timedelta(seconds=1))
    assert (decision.replicas, decision.able[1], decision.limited[1]) == (replicas, able, limited)
    assert decision.limited[0] == ("False" if limited == "DesiredWithinRange" else "True")


def test_what_has_changed_lately_counts() -> None:
    fields = spec(**rules("scaleUp", ("Pods", 4, 60)))
    history, current = History(), 2
    history.begin(current, NOW)
    for seconds, wanted in ((15, 6), (30, 6), (74, 6), (76, 10)):
        now = NOW + timedelta(seconds=seconds)
        decision = decided(fields, history, current, 50, now)
        assert decision.replicas == wanted, seconds
        if wanted != current:
            history.scaled(fields, current, wanted, now)
        current = wanted


def test_pods_are_given_up_when_nothing_larger_was_asked_for_in_the_window() -> None:
    history, current = History(), 8
    history.begin(current, NOW)
    for seconds, proposed, wanted in ((15, 3, 8), (200, 5, 8), (301, 2, 5), (499, 2, 5), (501, 2, 2)):
        current = decided(spec(), history, current, proposed, NOW + timedelta(seconds=seconds)).replicas
        assert current == wanted, seconds


def test_tolerances_are_the_autoscalers_own() -> None:
    assert tolerances_of(spec()) == Tolerances(0.1, 0.1)
    assert tolerances_of(spec(behavior={"scaleUp": {"tolerance": "50m"}})) == Tolerances(0.1, 0.05)


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 200)), max_size=30),
    st.integers(1, 20),
    st.integers(0, 50),
    st.sampled_from(["scaleUp", "scaleDown"]),
    st.sampled_from(["Max", "Min", "Disabled"]),
    st.lists(
        st.tuples(st.sampled_from(["Pods", "Percent"]), st.integers(1, 300), st.integers(1, 1800)),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 3600),
)
def test_no_history_leads_out_of_bounds(
    turns: list[tuple[int, int]],
    least: int,
    span: int,
    way: str,
    select: str,
    policies: list[tuple[str, int, int]],
    window: int,
) -> None:
    """Whatever is proposed and when, the number of pods stays within the bounds, moves towards what was
    proposed lately, and the history stays short."""
    fields = spec(
        minReplicas=least,
        maxReplicas=least + span,
        **rules(way, *policies, selectPolicy=select, stabilizationWindowSeconds=window),
    )
    history, current, now = History(), least, NOW
    history.begin(current, now)
    for seconds, proposed in turns:
        now += timedelta(seconds=seconds)
        before = current
        current = decided(fields, history, current, proposed, now).replicas
        assert least <= current <= least + span
        highest = max([proposed, *(one.replicas for one in history.proposed)])
        assert current <= max(before, highest) and current >= min(before, proposed)
        if current != before:
            history.scaled(fields, before, current, now)
        assert all(now - one.at <= timedelta(hours=1) for one in history.proposed)
