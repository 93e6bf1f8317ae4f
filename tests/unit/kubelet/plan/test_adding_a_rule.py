"""The document that says how to add a planner rule is followed to the letter, and pods end by it."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest

from unit.recipe import code_of, extended

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

RULE, PLACE = code_of("adding-a-planner-rule.md")
ENDING, PLAN = "podling.kubelet.plan.ending", "podling.kubelet.plan.plan"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    ending = extended(
        monkeypatch,
        ENDING,
        {"        return Ending(phase=pod.status.phase, grace_seconds=grace)\n": indent(PLACE, "    ")},
        appended=RULE,
    )
    return ending, extended(monkeypatch, PLAN)


@pytest.mark.parametrize(
    ("most", "observed", "planned", "reason"),
    [
        ("1", "a=exit1 a=run b=run", "", ""),
        ("0", "a=exit1 a=run b=run", "stop b-0(30), stop a-1(30)", "TooManyRestarts"),
        ("0", "a=run b=run", "", ""),
        ("often", "a=exit1 a=run b=run", "", ""),
    ],
)
def test_a_pod_ends_by_it(
    scene: type[Scene], modules: tuple[Any, Any], most: str, observed: str, planned: str, reason: str
) -> None:
    ending, planner = modules
    pod = scene.pod("a b")
    pod.metadata.annotations = {"toys.example.com/most-restarts": most}
    seen = scene.observed(pod, observed)
    end = ending.ending(pod, seen, scene.NOW)
    assert (end.reason if end else "") == reason
    assert scene.say(planner.plan(pod, seen, scene.NOW)) == planned
