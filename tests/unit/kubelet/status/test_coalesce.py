"""A status waits only while the pod comes up and something that changes it is under way."""

from __future__ import annotations

import pytest

from podling.kubelet.pod.actions import (
    Action,
    CreateSandbox,
    RecordInitialized,
    RemoveContainer,
    ResizePod,
    StartContainer,
    StopContainer,
)
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.status.writer import may_coalesce
from podling.model.types.pod_status import ContainerStatus, PodStatus

UNKNOWN = PodStatus(phase="Pending")
COMING_UP = PodStatus(phase="Pending", container_statuses=[ContainerStatus(name="app")])
RUNNING = PodStatus(phase="Running", container_statuses=[ContainerStatus(name="app")])
FAILED = PodStatus(phase="Failed", container_statuses=[ContainerStatus(name="app")])
START_APP = StartContainer("app", ContainerType.REGULAR)
START_SIDECAR = StartContainer("side", ContainerType.SIDECAR)
OTHERS = {
    StopContainer("1", "app", 30, "Terminating", "", pod_grace=30),
    RemoveContainer("1", "app"),
    RecordInitialized("s"),
    ResizePod(),
}


@pytest.mark.parametrize("action", [CreateSandbox(0), START_APP])
def test_what_comes_up_tells_the_outcome_of_a_step(action: Action) -> None:
    assert may_coalesce(COMING_UP, COMING_UP, {action})


@pytest.mark.parametrize(
    ("told", "status", "in_flight"),
    [
        (COMING_UP, COMING_UP, set()),
        (COMING_UP, COMING_UP, OTHERS),
        (UNKNOWN, COMING_UP, {CreateSandbox(0)}),
        (COMING_UP, RUNNING, {START_SIDECAR}),
        (COMING_UP, FAILED, {START_SIDECAR}),
        (RUNNING, RUNNING, {START_APP}),
    ],
)
def test_everything_else_is_told_at_once(told: PodStatus, status: PodStatus, in_flight: set[Action]) -> None:
    assert not may_coalesce(told, status, in_flight)
