"""Selectors completed with labels of the pod itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.pods.pods import Pods
from podling.model.codec.json import to_data
from podling.model.types.pod import Pod

MakePod = Callable[..., Pod]

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = {"app": "web", "version": "1"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def made(make_pod: MakePod, **spec: Any) -> Pod:
    pod = make_pod(metadata={"labels": LABELS}, **spec)
    Pods().prepare_create(pod, NOW)
    return pod


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"matchLabelKeys": ["version"]}, [{"key": "version", "operator": "In", "values": ["1"]}]),
        ({"mismatchLabelKeys": ["version"]}, [{"key": "version", "operator": "NotIn", "values": ["1"]}]),
        ({"matchLabelKeys": ["absent"]}, []),
        ({}, []),
    ],
)
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_affinity(make_pod: MakePod, kind: str, term: dict[str, Any], expected: list[Any]) -> None:
    whole = {"topologyKey": "zone", "labelSelector": {}, **term}
    preferred = [{"weight": 1, "podAffinityTerm": whole}]
    pod = made(make_pod, affinity={kind: {REQUIRED: [whole], PREFERRED: preferred}})
    terms = to_data(pod.spec.affinity)[kind]
    for one in (terms[REQUIRED][0], terms[PREFERRED][0]["podAffinityTerm"]):
        assert one["labelSelector"].get("matchExpressions", []) == expected


def spread(**fields: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"topologySpreadConstraints": [constraint]}


def test_spread(make_pod: MakePod) -> None:
    pod = made(make_pod, **spread(matchLabelKeys=["app"], labelSelector={"matchLabels": {"x": "y"}}))
    (constraint,) = pod.spec.topology_spread_constraints
    assert constraint.label_selector is not None
    assert to_data(constraint.label_selector) == {
        "matchLabels": {"x": "y"},
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}],
    }


def test_no_selector_stays_none(make_pod: MakePod) -> None:
    pod = made(make_pod, **spread(matchLabelKeys=["app"]))
    assert pod.spec.topology_spread_constraints[0].label_selector is None


def test_once_is_enough(make_pod: MakePod) -> None:
    """A name that was taken lets a pod be prepared again."""
    pod = made(make_pod, **spread(matchLabelKeys=["app"], labelSelector={}))
    Pods().prepare_create(pod, NOW)
    assert Pods().validate_create(pod) == []
