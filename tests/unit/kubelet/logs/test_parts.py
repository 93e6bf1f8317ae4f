"""The files one log is in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.logs.rotation import Chores, chores, part_name, parts

ONE, TWO, THREE, FOUR = (f"0.log.20260102-03040{n}" for n in (1, 2, 3, 4))


def test_a_part_is_named_for_when_it_ended() -> None:
    assert part_name("0.log", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "0.log.20260102-030405"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["0.log", TWO, f"{ONE}.gz"], [f"{ONE}.gz", TWO]),
        (["0.log", f"{ONE}.tmp", f"1{ONE}", "0.log.old", "1.log", TWO.replace("0.log", "10.log")], []),
        ([ONE, f"{ONE}.gz"], [f"{ONE}.gz"]),
    ],
    ids=["oldest first", "what is none", "once, when it is compressed and not yet removed"],
)
def test_the_parts_of_a_log(names: list[str], found: list[str]) -> None:
    assert parts("0.log", names) == found


@pytest.mark.parametrize(
    ("names", "max_files", "todo"),
    [
        ([], 5, Chores((), ())),
        ([ONE], 5, Chores((), (ONE,))),
        ([f"{ONE}.gz", TWO], 5, Chores((), (TWO,))),
        ([f"{ONE}.gz", f"{TWO}.gz", f"{THREE}.gz", FOUR], 5, Chores((f"{ONE}.gz",), (FOUR,))),
        ([f"{ONE}.gz", TWO], 2, Chores((f"{ONE}.gz", TWO), ())),
        ([ONE, f"{ONE}.gz", f"{TWO}.tmp", TWO], 5, Chores((ONE, f"{TWO}.tmp"), (TWO,))),
    ],
    ids=["none", "the first", "the next", "one too many", "none are kept", "left by one that was killed"],
)
def test_what_is_to_be_done(names: list[str], max_files: int, todo: Chores) -> None:
    assert chores("0.log", ["0.log", *names], max_files) == todo


@given(
    st.sets(
        st.sampled_from([f"{part}{end}" for part in (ONE, TWO, THREE, FOUR) for end in ("", ".gz", ".tmp")])
    ),
    st.integers(2, 6),
)
def test_no_more_than_that_many_files_and_never_the_newest_lost(names: set[str], max_files: int) -> None:
    before = parts("0.log", names)
    left = names - set(chores("0.log", names, max_files).remove)
    after = parts("0.log", left)
    assert len(left) == len(after) <= max_files - 2
    assert after == before[len(before) - len(after) :]
