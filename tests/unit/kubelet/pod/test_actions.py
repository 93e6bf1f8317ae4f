"""When an action in flight makes another needless: it is for the same thing, and does no less."""

from __future__ import annotations

from itertools import combinations

import pytest

from podling.kubelet.pod.actions import (
    Action,
    CreateSandbox,
    Finish,
    PreStop,
    RecordInitialized,
    RemoveContainer,
    RemoveSandbox,
    ResizePod,
    StartContainer,
    StopContainer,
    StopSandbox,
    covers,
)
from podling.kubelet.pod.containers import ContainerType


def stop(id_: str, pod_grace: int, grace: int = 30, reason: str = "Terminating") -> StopContainer:
    return StopContainer(id_, "a", grace, reason, message="", pod_grace=pod_grace)


def start(name: str, attempt: int = 0) -> StartContainer:
    return StartContainer(name, ContainerType.REGULAR, attempt)


ALL = [
    CreateSandbox(0),
    StopSandbox("1"),
    RemoveSandbox("1"),
    start("1"),
    stop("1", 30),
    PreStop("1", "a", 30),
    RemoveContainer("1", "a"),
    RecordInitialized("1"),
    ResizePod(),
    Finish(),
]


@pytest.mark.parametrize("action", ALL)
def test_an_action_covers_itself(action: Action) -> None:
    assert covers(action, action)


@pytest.mark.parametrize(("one", "other"), list(combinations(ALL, 2)))
def test_no_action_covers_another_kind(one: Action, other: Action) -> None:
    assert not covers(one, other) and not covers(other, one)


@pytest.mark.parametrize(
    ("in_flight", "wanted", "covered"),
    [
        (CreateSandbox(0), CreateSandbox(1), True),
        (start("a"), start("a", attempt=1), True),
        (start("a"), start("b"), False),
        (PreStop("1", "a", 30), PreStop("1", "a", 5), True),
        (PreStop("1", "a", 30), PreStop("2", "a", 30), False),
        (stop("1", 30), stop("1", 30, grace=2, reason="Unhealthy"), True),
        (stop("1", 5), stop("1", 30), True),
        (stop("1", 30), stop("1", 5), False),
        (stop("1", 30), stop("2", 30), False),
        (StopSandbox("1"), StopSandbox("2"), False),
        (RemoveSandbox("1"), RemoveSandbox("2"), False),
        (RemoveContainer("1", "a"), RemoveContainer("2", "a"), False),
        (RecordInitialized("1"), RecordInitialized("1@2"), False),
    ],
)
def test_what_is_for_the_same_thing_is_covered(in_flight: Action, wanted: Action, covered: bool) -> None:
    assert covers(in_flight, wanted) is covered
