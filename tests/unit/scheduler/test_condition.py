from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.scheduler.info import PodInfo
from podling.scheduler.loop import not_scheduled, preempted

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-02T03:04:05Z"


def standing(message: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": EARLIER,
        **more,
    }


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], standing("full", lastTransitionTime=LATER)),
        ([standing("full", status="True")], standing("full", lastTransitionTime=LATER)),
        ([standing("other")], standing("full")),
        ([standing("full")], None),
    ],
)
def test_the_condition_changes_its_time_only_with_its_status(
    before: list[dict[str, Any]], expected: dict[str, Any] | None, pod: Callable[..., PodInfo]
) -> None:
    patch = not_scheduled(pod(status={"conditions": before}).pod, "Unschedulable", "full", "", NOW)
    assert (patch and patch["status"]["conditions"]) == (expected and [expected])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("", "a", {"nominatedNodeName": "a"}), ("a", "", {"nominatedNodeName": None}), ("a", "a", None)],
)
def test_a_promise_is_made_and_taken_back(
    before: str, after: str, expected: dict[str, Any] | None, pod: Callable[..., PodInfo]
) -> None:
    said = pod(status={"conditions": [standing("full")], "nominatedNodeName": before}).pod
    patch = not_scheduled(said, "Unschedulable", "full", after, NOW)
    assert (patch and patch["status"]) == expected


def test_what_a_victim_is_told(pod: Callable[..., PodInfo]) -> None:
    patch = preempted(pod("victim").pod, pod("p", schedulerName="mine").pod, NOW)
    assert patch == {
        "metadata": {"uid": "victim"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "message": "mine: preempting to accommodate a higher priority pod",
                    "lastProbeTime": None,
                    "lastTransitionTime": LATER,
                }
            ]
        },
    }
