from __future__ import annotations

import pytest

from podling.scheduler.filter import Refusal
from podling.scheduler.loop import explain, explain_preemption

CPU = Refusal("NodeResourcesFit", ("Insufficient cpu",))
BOTH = Refusal("NodeResourcesFit", ("Insufficient cpu", "Insufficient memory"))
CORDON = Refusal("NodeUnschedulable", ("node(s) were unschedulable",), final=True)


@pytest.mark.parametrize(
    ("nodes", "refusals", "preemption", "expected"),
    [
        (0, [], "", "no nodes available to schedule pods"),
        (1, [CPU], "", "0/1 nodes are available: 1 Insufficient cpu."),
        (
            3,
            [CORDON, CPU, BOTH],
            "not eligible.",
            "0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, "
            "2 Insufficient cpu. no new claims to deallocate, preemption: not eligible.",
        ),
    ],
)
def test_why_no_node(nodes: int, refusals: list[Refusal], preemption: str, expected: str) -> None:
    assert explain(nodes, refusals, preemption) == expected


def test_why_no_preemption() -> None:
    """Nodes that were not looked at are those where it cannot help."""
    victims = Refusal("", ("No preemption victims found for incoming pod",))
    assert explain_preemption(3, [victims, CPU]) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert explain_preemption(1, [victims]) == (
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
