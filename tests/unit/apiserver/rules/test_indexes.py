"""R-SYS-1: sets of a Job's indexes, as text and as ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.rules.indexes import overlap, parse_indexes

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
