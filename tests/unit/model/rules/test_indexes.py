"""R-SYS-1: sets of a Job's indexes, as text and as ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.rules.indexes import (
    as_ranges,
    common,
    first_missing,
    has_index,
    indexes_below,
    overlap,
    parse_indexes,
    total,
    union,
    write_indexes,
)

TWO_PARTS = "an index interval can have at most two parts separated by '-'"
SETS = st.frozensets(st.integers(0, 60))


def text_of(indexes: frozenset[int]) -> str:
    """Neighbours as an interval, such as `1,3-5,7`."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


@given(SETS)
def test_every_set_is_read_as_it_was_written(indexes: frozenset[int]) -> None:
    assert {index for part in parse_indexes(text_of(indexes), 61) for index in part} == indexes


@given(SETS, SETS)
def test_the_first_that_both_have(one: frozenset[int], other: frozenset[int]) -> None:
    shared = overlap(parse_indexes(text_of(one), 61), parse_indexes(text_of(other), 61))
    assert (shared is not None) == bool(one & other)
    assert shared is None or shared in one & other


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a", 'cannot convert string to integer for index: "a"'),
        ("1,", 'cannot convert string to integer for index: ""'),
        ("9" * 19, f'cannot convert string to integer for index: "{"9" * 19}"'),
        ("5", 'too large index: "5"'),
        ("1-2-3", f'the fragment "1-2-3" violates the requirement that {TWO_PARTS}'),
        ("3,1", "non-increasing order, previous: 3, current: 1"),
        ("1-1", "non-increasing order, previous: 1, current: 1"),
    ],
)  # fmt: skip
def test_what_is_no_set(text: str, fault: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_indexes(text, 5)
    assert str(refused.value) == fault


@given(SETS, SETS, st.integers(0, 60), st.integers(0, 9))
def test_ranges_are_the_sets_that_they_stand_for(
    one: frozenset[int], other: frozenset[int], below: int, count: int
) -> None:
    ranges, others = as_ranges(one), as_ranges(other)
    assert indexes_below(write_indexes(ranges), 61) == ranges
    assert {index for part in indexes_below(write_indexes(ranges), below) for index in part} == {
        index for index in one if index < below
    }
    assert union(ranges, others) == as_ranges(one | other)
    assert (total(ranges), common(ranges, others)) == (len(one), len(one & other))
    assert has_index(ranges, below) == (below in one)
    assert first_missing(ranges, below, count) == sorted(set(range(below)) - one)[:count]


def test_two_that_follow_each_other_are_written_as_two() -> None:
    assert write_indexes(as_ranges([1, 2, 4, 6, 7, 8])) == "1,2,4,6-8"
