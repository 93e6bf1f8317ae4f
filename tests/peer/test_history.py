"""The checker of histories finds every fault that is planted, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from peer.history import History, Led, Logged, Read, Watched, Wrote, faults

KEYS = ("a", "b", "c")
FIRST = 100
"""The revision before the first change."""


class Step(NamedTuple):
    """One change, and who looks at what right after it."""

    key: str
    deletes: bool
    lists: bool
    known: bool
    """Whether who made it was told of it."""


STEPS = st.lists(
    st.builds(Step, st.sampled_from(KEYS), st.booleans(), st.booleans(), st.booleans()),
    min_size=3,
    max_size=25,
)


def played(steps: Sequence[Step]) -> History:
    """A history in which all of it was so, one thing after the other: change, read, list."""
    log: list[Logged] = []
    writes: list[Wrote] = []
    reads: list[Read] = []
    standing: dict[str, tuple[str, int]] = {}
    for n, step in enumerate(steps):
        revision, time = FIRST + 2 * n + 2, 10.0 * n
        if step.deletes and step.key in standing:
            log.append(Logged(revision, step.key, None))
            del standing[step.key]
            writes.append(Wrote(time, time + 1, "made", step.key, None))
        else:
            log.append(Logged(revision, step.key, f"v{n}"))
            standing[step.key] = (f"v{n}", revision)
            told = Wrote(time, time + 1, "made", step.key, f"v{n}", revision)
            writes.append(told if step.known else told._replace(outcome="unknown", revision=0))
        seen = {step.key: standing[step.key]} if step.key in standing else {}
        reads.append(Read(time + 2, time + 3, [step.key], seen))
        if step.lists:
            reads.append(Read(time + 4, time + 5, None, dict(standing), revision))
    middle, last = FIRST + len(steps), log[-1].revision
    watches = [
        Watched(FIRST, log, last),
        Watched(middle, [one for one in log if one.revision > middle], last + 1),
    ]
    leaders = [Led(0, 5, "x"), Led(5, 7, "y"), Led(8, 20, "x")]
    return History(log, writes, reads, watches, leaders)


@given(STEPS)
def test_what_was_so_has_no_fault(steps: list[Step]) -> None:
    assert faults(played(steps)) == []


def test_nothing_has_no_fault() -> None:
    assert faults(History([])) == []


def one_of(data: st.DataObject, found: Sequence[int]) -> int:
    return data.draw(st.sampled_from(found))


def puts(history: History) -> list[int]:
    """The writes of values that were told to be made."""
    return [n for n, one in enumerate(history.writes) if one.outcome == "made" and one.value]


def without(log: Sequence[Logged], revision: int) -> list[Logged]:
    return [one for one in log if one.revision != revision]


def lost(history: History, data: st.DataObject) -> History:
    """An acknowledged write is not in etcd, and nobody has read it."""
    write = history.writes[one_of(data, puts(history))]
    return History(without(history.log, write.revision), history.writes)


def told_wrongly(history: History, data: st.DataObject) -> History:
    n = one_of(data, puts(history))
    writes = list(history.writes)
    writes[n] = writes[n]._replace(revision=writes[n].revision + 1)
    return History(history.log, writes)


def twice(history: History, data: st.DataObject) -> History:
    entry = history.log[one_of(data, [n for n, one in enumerate(history.log) if one.value])]
    return History([*history.log, entry._replace(revision=history.log[-1].revision + 1)], history.writes)


def refused_and_made(history: History, data: st.DataObject) -> History:
    n = one_of(data, puts(history))
    writes = list(history.writes)
    writes[n] = writes[n]._replace(outcome="refused", revision=0)
    return History(history.log, writes)


def nobodys(history: History, data: st.DataObject) -> History:
    return History([*history.log, Logged(history.log[-1].revision + 1, "a", "strange")], history.writes)


def stale(history: History, data: st.DataObject) -> History:
    """A read long after a write was acknowledged finds what stood before it."""
    write = history.writes[one_of(data, puts(history))]
    before = [one for one in history.log if one.key == write.key and one.revision < write.revision]
    later = [one for one in history.log if one.key == write.key and one.revision > write.revision]
    stood = before[-1] if before else None
    found = {write.key: (stood.value, stood.revision)} if stood and stood.value else {}
    # Where it was deleted later, nothing is what may be found.
    assume(found or all(one.value for one in later))
    end = write.end + 5000
    return history._replace(reads=[*history.reads, Read(end, end + 1, [write.key], found)])


def stale_list(history: History, data: st.DataObject) -> History:
    """The list is as it was once, and older than what was told."""
    end = history.writes[-1].end + 5000
    return history._replace(reads=[*history.reads, Read(end, end + 1, None, {}, FIRST)])


def never_so(history: History, data: st.DataObject) -> History:
    end = history.writes[-1].end + 5000
    return history._replace(reads=[*history.reads, Read(end, end + 1, ["a"], {"a": ("strange", FIRST + 1)})])


def back_in_time(history: History, data: st.DataObject) -> History:
    """A read finds less than another has found, of a write that nobody was told of."""
    log = [*history.log, Logged(9000, "a", "late")]
    writes = [*history.writes, Wrote(5000, 5001, "unknown", "a", "late")]
    stood = next((one for one in reversed(history.log) if one.key == "a"), None)
    found = {"a": (stood.value, stood.revision)} if stood and stood.value else {}
    reads = [Read(6000, 6001, ["a"], {"a": ("late", 9000)}), Read(6002, 6003, ["a"], found)]
    return History(log, writes, reads)


def gap(history: History, data: st.DataObject) -> History:
    told = history.watches[0].told
    dropped = told[one_of(data, range(len(told)))]
    return _watching(history, without(told, dropped.revision))


def repeat(history: History, data: st.DataObject) -> History:
    told = list(history.watches[0].told)
    n = one_of(data, range(len(told)))
    return _watching(history, [*told[: n + 1], *told[n:]])


def step_back(history: History, data: st.DataObject) -> History:
    told = list(history.watches[0].told)
    n = one_of(data, range(len(told) - 1))
    told[n], told[n + 1] = told[n + 1], told[n]
    return _watching(history, told)


def other_value(history: History, data: st.DataObject) -> History:
    told = list(history.watches[0].told)
    n = one_of(data, range(len(told)))
    told[n] = told[n]._replace(value="strange")
    return _watching(history, told)


def bookmark_too_far(history: History, data: st.DataObject) -> History:
    """It was told to have all before the last change, which it has not brought."""
    told = history.watches[0].told[:-1]
    return _watching(history, told)


def _watching(history: History, told: Sequence[Logged]) -> History:
    return history._replace(watches=[history.watches[0]._replace(told=told)])


def two_lead(history: History, data: st.DataObject) -> History:
    return history._replace(leaders=[*history.leaders, Led(10, 11, "z")])


def in_the_past(history: History, data: st.DataObject) -> History:
    """A write gets a revision below that of one that was acknowledged before it began."""
    log = [Logged(FIRST + 1, "a", "late"), *history.log]
    at = history.writes[-1].end + 100
    writes = [*history.writes, Wrote(at, at + 1, "made", "a", "late", FIRST + 1)]
    return History(log, writes)


PLANTED: list[Callable[[History, st.DataObject], History]] = [
    lost,
    told_wrongly,
    twice,
    refused_and_made,
    nobodys,
    stale,
    stale_list,
    never_so,
    back_in_time,
    gap,
    repeat,
    step_back,
    other_value,
    bookmark_too_far,
    two_lead,
    in_the_past,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
@given(st.data(), STEPS)
def test_a_planted_fault_is_found(
    plant: Callable[[History, st.DataObject], History], data: st.DataObject, steps: list[Step]
) -> None:
    # At least one write that its client was told of.
    history = played([*steps, Step("b", deletes=False, lists=True, known=True)])
    assert faults(plant(history, data)) != []


def test_what_overlaps_may_be_seen_or_not() -> None:
    log = [Logged(101, "a", "x"), Logged(102, "a", "y")]
    writes = [Wrote(0, 1, "made", "a", "x", 101), Wrote(2, 9, "made", "a", "y", 102)]
    for found in ({"a": ("x", 101)}, {"a": ("y", 102)}):
        assert faults(History(log, writes, [Read(3, 4, ["a"], found)])) == []
    assert faults(History(log, writes, [Read(10, 11, ["a"], {"a": ("x", 101)})])) != []


def test_a_deletion_that_was_acknowledged_was_made() -> None:
    log = [Logged(101, "a", "x")]
    writes = [Wrote(0, 1, "made", "a", "x", 101), Wrote(2, 3, "made", "a", None)]
    assert faults(History(log, writes)) != []
    assert faults(History([*log, Logged(102, "a", None)], writes)) == []
