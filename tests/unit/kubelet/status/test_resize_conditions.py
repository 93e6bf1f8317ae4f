"""What a resize shows in status and events (R-SYS-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from podling.kubelet.pod.observed import PendingResize
from podling.kubelet.status.conditions import resize_conditions
from podling.kubelet.status.pod_status import resize_events
from podling.model.quantity import Quantity
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodCondition, PodStatus

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

SUMMARY = '{"containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}],"generation":3}'
FAILED = '{"containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}],"generation":3,"error":"no"}'


def pod_of(scene: type[Scene]) -> Pod:
    pod = scene.pod("a")
    pod.metadata.generation = 4
    pod.spec.containers[0].resources = ResourceRequirements(requests={"cpu": Quantity("2")})
    return pod


def shown(scene: type[Scene], seen: str = "", **known: Any) -> list[tuple[str, str, str, str, int]]:
    pod = pod_of(scene)
    found = resize_conditions(pod, replace(scene.observed(pod, seen), **known), scene.NOW)
    return [(c.type, c.status, c.reason, c.message, c.observed_generation) for c in found]


def test_nothing_is_shown_of_a_pod_that_has_what_it_wants(scene: type[Scene]) -> None:
    assert shown(scene, "a=exit0") == []


def test_what_cannot_be_had(scene: type[Scene]) -> None:
    pending = PendingResize("Deferred", "not now")
    assert shown(scene, pending_resize=pending) == [("PodResizePending", "True", "Deferred", "not now", 4)]


def test_what_was_given_and_is_not_actuated(scene: type[Scene]) -> None:
    in_progress = "PodResizeInProgress", "True"
    assert shown(scene, "a=run", resized_generation=3) == [(*in_progress, "", "", 3)]
    assert shown(scene, "a=run") == [(*in_progress, "", "", 4)]
    failure = scene.failure("Error", message="no")
    assert shown(scene, "a=run", resize_failure=failure) == [(*in_progress, "Error", "no", 4)]


def pending(reason: str, message: str = "no") -> PodCondition:
    return PodCondition(
        type="PodResizePending", status="True", reason=reason, message=message, observed_generation=3
    )


def progress(generation: int = 3, message: str = "") -> PodCondition:
    reason = "Error" if message else ""
    return PodCondition(
        type="PodResizeInProgress",
        status="True",
        reason=reason,
        message=message,
        observed_generation=generation,
    )


def warning(reason: str, what: str) -> tuple[bool, str, str]:
    return True, f"Resize{reason}", f"Pod resize {what}: {FAILED}"


def normal(reason: str, what: str) -> tuple[bool, str, str]:
    return False, f"Resize{reason}", f"Pod resize {what}: {SUMMARY}"


EVENTS = [
    # before                 after                            what is said
    ([],                     [],                              []),
    ([],                     [pending("Deferred")],           [warning("Deferred", "Deferred")]),
    ([pending("Deferred")],  [pending("Deferred")],           []),
    ([pending("Deferred")],  [pending("Infeasible")],         [warning("Infeasible", "Infeasible")]),
    ([pending("Deferred")],  [progress()],                    [normal("Started", "started")]),
    ([progress()],           [progress()],                    []),
    ([progress(2)],          [progress(3)],                   [normal("Started", "started")]),
    ([progress()],           [progress(3, "no")],             [warning("Error", "error")]),
    ([progress(3, "no")],    [progress(3, "no")],             []),
    ([progress()],           [],                              [normal("Completed", "completed")]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "said"), EVENTS)
def test_what_is_said_when_conditions_change(
    scene: type[Scene],
    before: list[PodCondition],
    after: list[PodCondition],
    said: list[tuple[bool, str, str]],
) -> None:
    found = resize_events(pod_of(scene), PodStatus(conditions=before), PodStatus(conditions=after))
    assert [tuple(event)[:3] for event in found] == said
