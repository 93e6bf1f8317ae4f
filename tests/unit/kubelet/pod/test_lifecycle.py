from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from podling.kubelet.pod.lifecycle import MOVES, IllegalMove, PodLife, PodState, furthest


@pytest.mark.parametrize(("start", "to"), list(itertools.product(PodState, PodState)))
def test_every_move_is_in_the_table_or_refused(start: PodState, to: PodState) -> None:
    life = PodLife(start)
    if to is start:
        assert life.move(to) is False
    elif to in MOVES[start]:
        assert life.move(to) is True
        assert life.state is to
    else:
        with pytest.raises(IllegalMove, match=f"a {start.value} pod cannot become {to.value}"):
            life.move(to)
        assert life.state is start


def test_no_way_leads_back() -> None:
    order = list(PodState)
    assert all(order.index(to) > order.index(start) for start, moves in MOVES.items() for to in moves)
    assert furthest(PodState.TERMINATED, PodState.TERMINATING) is PodState.TERMINATED


def test_the_diagram_in_the_docs_is_the_table() -> None:
    flow = (Path(__file__).parents[4] / "docs/flow.md").read_text()
    (diagram,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", flow, re.DOTALL)
    drawn = re.findall(r"^ +(\S+) --> (\S+?)(?::.*)?$", diagram, re.MULTILINE)
    table = {(start.value, to.value) for start, moves in MOVES.items() for to in moves}
    ends = {("[*]", PodLife().state.value)} | {(s.value, "[*]") for s, moves in MOVES.items() if not moves}
    assert sorted(drawn) == sorted(table | ends)
