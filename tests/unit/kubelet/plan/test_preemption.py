"""Who has to go for a critical pod (R-SYS-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.plan.admission import amounts, preemptable, victims
from podling.model.quantity import Quantity
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

CRITICAL = 2_000_000_000


def one(
    scene: type[Scene], name: str, cpu: int = 0, *, guaranteed: bool = False, priority: int | None = None
) -> Pod:
    """cpu in thousandths."""
    pod = scene.pod("a", priority=priority)
    pod.metadata.name = name
    asked = {"cpu": Quantity(f"{cpu}m"), "memory": Quantity("1")} if cpu else {}
    pod.spec.containers[0].resources.requests = asked
    pod.spec.containers[0].resources.limits = asked if guaranteed else {}
    return pod


CHOICES = [
    # the others: name, cpu, guaranteed                               missing        who goes
    ([("b", 0, False), ("u", 500, False), ("g", 500, True)],          {"cpu": 300},  ["u"]),
    ([("u", 200, False), ("g", 500, True)],                           {"cpu": 300},  ["g"]),
    ([("u1", 200, False), ("u2", 900, False), ("u3", 400, False)],    {"cpu": 300},  ["u3"]),
    ([("u1", 200, False), ("u2", 150, False), ("u3", 100, False)],    {"cpu": 300},  ["u1", "u3"]),
    ([("b1", 0, False), ("u", 500, False)],                           {"pods": 1},   ["b1"]),
    ([("u", 200, False)],                                             {"cpu": 300},  None),
]  # fmt: skip


@pytest.mark.parametrize(("others", "missing", "chosen"), CHOICES)
def test_the_least_protected_that_have_enough(
    scene: type[Scene], others: list[tuple[str, int, bool]], missing: dict[str, int], chosen: list[str] | None
) -> None:
    pods = [one(scene, name, cpu, guaranteed=guaranteed) for name, cpu, guaranteed in others]
    found = victims(one(scene, "me", priority=CRITICAL), pods, missing)
    assert (None if found is None else [pod.metadata.name for pod in found]) == chosen


@pytest.mark.parametrize(
    ("mine", "theirs", "goes"),
    [(CRITICAL, None, True), (CRITICAL, CRITICAL, False), (CRITICAL + 1, CRITICAL, True), (5, 9, False)],
)
def test_no_pod_goes_for_one_that_is_not_more_important(
    scene: type[Scene], mine: int, theirs: int | None, goes: bool
) -> None:
    assert preemptable(one(scene, "me", priority=mine), one(scene, "it", priority=theirs)) is goes


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8), st.integers(1, 40), st.integers(0, 3)
)
def test_those_who_go_are_enough(
    scene: type[Scene], others: list[tuple[int, bool]], cpu: int, places: int
) -> None:
    pods = [one(scene, str(i), 100 * c, guaranteed=g) for i, (c, g) in enumerate(others)]
    missing = {name: need for name, need in (("cpu", 100 * cpu), ("pods", places)) if need}
    chosen = victims(one(scene, "me", priority=CRITICAL), pods, missing)
    all_of_them = {name: sum(amounts(pod).get(name, 0) for pod in pods) for name in missing}
    if chosen is None:
        assert any(all_of_them[name] < need for name, need in missing.items())
        return
    assert len({id(pod) for pod in chosen}) == len(chosen)
    for name, need in missing.items():
        assert sum(amounts(pod).get(name, 0) for pod in chosen) >= need
