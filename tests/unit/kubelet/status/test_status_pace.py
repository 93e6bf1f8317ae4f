"""A status waits only while the pod comes up and something that changes it is under way."""

from __future__ import annotations

import pytest

from podling.kubelet.status.writer import is_about_to_change
from podling.model.types.pod_status import ContainerStatus, PodStatus

UNKNOWN = PodStatus(phase="Pending")
COMING_UP = PodStatus(phase="Pending", container_statuses=[ContainerStatus(name="app")])
RUNNING = PodStatus(phase="Running", container_statuses=[ContainerStatus(name="app")])
FAILED = PodStatus(phase="Failed", container_statuses=[ContainerStatus(name="app")])


@pytest.mark.parametrize("key", ["create-sandbox", "start:app"])
def test_what_comes_up_tells_the_outcome_of_a_step(key: str) -> None:
    assert is_about_to_change(COMING_UP, COMING_UP, {key})


@pytest.mark.parametrize(
    ("told", "status", "in_flight"),
    [
        (COMING_UP, COMING_UP, set()),
        (COMING_UP, COMING_UP, {"stop:1:30", "remove:1", "initialized:s", "resize"}),
        (UNKNOWN, COMING_UP, {"create-sandbox"}),
        (COMING_UP, RUNNING, {"start:side"}),
        (COMING_UP, FAILED, {"start:side"}),
        (RUNNING, RUNNING, {"start:app"}),
    ],
)
def test_everything_else_is_told_at_once(told: PodStatus, status: PodStatus, in_flight: set[str]) -> None:
    assert not is_about_to_change(told, status, in_flight)
