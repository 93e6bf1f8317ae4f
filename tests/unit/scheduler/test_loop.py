from __future__ import annotations

from collections import Counter

import pytest

from podling.scheduler.loop import explanation

NOT_HELPFUL = "preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."


@pytest.mark.parametrize(
    ("nodes", "reasons", "expected"),
    [
        (0, {}, "no nodes available to schedule pods"),
        (
            3,
            {"node(s) were unschedulable": 1, "Insufficient cpu": 2},
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
            + NOT_HELPFUL.format(n=3),
        ),
    ],
)
def test_why_no_node(nodes: int, reasons: dict[str, int], expected: str) -> None:
    assert explanation(nodes, Counter(reasons)) == expected
