"""How fast the nodes of a zone are given up, which follows from how many of all zones are lost."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.controllers.node_zones import EXCLUDED, Counted, Gate, Limits, Zones, rates, zone_of
from podling.model.codec.json import from_data
from podling.model.rules.status import is_condition_true
from podling.model.types.node import Node

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LIMITS = Limits(usual=1.0, reduced=0.1, unhealthy=0.55, large=50)
A, B = ("r", "a"), ("r", "b")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def node(status: str, **labels: str) -> Node:
    conditions = [{"type": "Ready", "status": status}] if status else []
    return from_data({"metadata": {"labels": labels}, "status": {"conditions": conditions}}, Node)


@pytest.mark.parametrize(
    ("ready", "lost", "rate"),
    [
        (4, 0, 1.0),
        (1, 2, 1.0),
        (3, 3, 1.0),
        (9, 11, 0.0),
        (1, 3, 0.0),
        (1, 49, 0.0),
        (1, 50, 0.1),
        (23, 28, 1.0),
        (22, 29, 0.1),
        (0, 3, 1.0),
    ],
)
def test_of_a_zone_while_another_is_well(ready: int, lost: int, rate: float) -> None:
    assert rates({A: Counted(ready, lost), B: Counted(1, 0)}, LIMITS) == {A: rate, B: 1.0}


def test_none_where_all_are_lost() -> None:
    assert rates({A: Counted(0, 60), B: Counted(0, 1)}, LIMITS) == {A: 0.0, B: 0.0}
    assert rates({}, LIMITS) == {}


NODES = st.builds(
    lambda status, zone, labels: node(status, **{"topology.kubernetes.io/zone": zone}, **labels),
    st.sampled_from(["True", "False", "Unknown", ""]),
    st.sampled_from("ab"),
    st.sampled_from([{}, {EXCLUDED: ""}]),
)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.none() | NODES), max_size=20))
def test_nodes_are_counted_as_if_all_were_looked_at(changes: list[tuple[str, Node | None]]) -> None:
    zones, nodes = Zones(LIMITS), dict[str, Node]()
    for name, new in changes:
        zones.change(nodes.pop(name, None), new)
        if new is not None:
            nodes[name] = new
    counted = [one for one in nodes.values() if EXCLUDED not in one.metadata.labels]
    ready = Counter(zone_of(one) for one in counted if is_condition_true(one.status.conditions, "Ready"))
    every = Counter(map(zone_of, counted))
    assert zones.counted == {zone: Counted(ready[zone], every[zone] - ready[zone]) for zone in every}


def test_a_zone_keeps_its_gate_while_its_only_node_changes() -> None:
    zones, one = Zones(LIMITS), node("False")
    zones.change(None, one)
    gate = zones.gate(one)
    zones.change(one, node("True"))
    assert zones.gate(one) is gate
    zones.change(node("True"), None)
    assert zones.gate(one) is not gate


def test_the_zone_of_a_node() -> None:
    labels = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
    assert zone_of(node("", **labels)) == ("r", "z")
    assert zone_of(node("", **labels, **{"failure-domain.beta.kubernetes.io/zone": "old"})) == ("r", "old")


def test_a_gate_lets_one_through_at_once_and_the_next_when_it_is_time() -> None:
    gate = Gate(0.1)
    assert gate.wait(NOW) == seconds(0)
    gate.through(NOW)
    assert gate.wait(NOW + seconds(4)) == seconds(6)
    assert gate.wait(NOW + seconds(10)) == seconds(0)


def test_who_waits_at_a_gate_waits_anew_by_another_rate() -> None:
    gate = Gate(0.1)
    gate.through(NOW)
    assert not gate.set(0.1, NOW)
    assert gate.set(1.0, NOW)
    assert gate.wait(NOW) == seconds(1)
    # Nobody waits any more.
    assert gate.set(0.1, NOW + seconds(2))
    assert gate.wait(NOW + seconds(2)) <= seconds(0)  # type: ignore[operator]


def test_a_gate_that_was_closed_opens_after_a_while() -> None:
    gate = Gate(0.1)
    gate.set(0.0, NOW)
    assert gate.wait(NOW + seconds(100)) is None
    gate.set(0.5, NOW + seconds(100))
    assert gate.wait(NOW + seconds(100)) == seconds(2)
