"""Which images go: told as tables, in minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.images.garbage import Found, KnownImage, Marks, candidates, excess, known_images

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def image(name: str, used: float, first_seen: float = 60, *, pinned: bool = False) -> KnownImage:
    return KnownImage(name, 100, ago(first_seen), ago(used), pinned)


@pytest.mark.parametrize(
    ("known", "in_use", "order"),
    [
        ([image("new", 1), image("old", 50), image("older", 55)], (), ["older", "old", "new"]),
        ([image("a", 50), image("b", 40)], ("a",), ["b"]),
        ([image("a", 50, pinned=True), image("b", 40)], (), ["b"]),
        ([image("a", 1, first_seen=1), image("b", 1, first_seen=2)], (), ["b"]),
        ([image("a", 10, first_seen=20), image("b", 10, first_seen=30)], (), ["b", "a"]),
    ],
    ids=["longest unused first", "in use", "pinned", "new here", "of the same age, seen first"],
)
def test_the_order_images_go_in(known: list[KnownImage], in_use: tuple[str, ...], order: list[str]) -> None:
    assert [chosen.id for chosen in candidates(known, in_use, NOW)] == order


@pytest.mark.parametrize(
    ("available", "to_free"),
    [(1000, 0), (160, 0), (159, 41), (150, 50), (100, 100), (0, 200)],
)
def test_nothing_goes_below_the_high_mark_and_enough_above_it(available: int, to_free: int) -> None:
    assert excess(1000, available) == to_free


def test_collecting_can_be_switched_off() -> None:
    assert excess(1000, 0, Marks(100, 80)) == 0


def test_a_file_system_without_a_size_is_never_full() -> None:
    assert excess(0, 0) == 0


def test_what_is_known_of_images() -> None:
    before = {"kept": image("kept", 30), "used": image("used", 30), "gone": image("gone", 30)}
    found = [Found("kept", 100), Found("used", 100), Found("new", 100, pinned=True)]
    assert known_images(before, found, {"used"}, NOW) == {
        "kept": image("kept", 30),
        "used": image("used", 0),
        "new": image("new", 0, first_seen=0, pinned=True),
    }


@given(capacity=st.integers(0, 10**6), available=st.integers(0, 10**6))
def test_what_is_freed_brings_it_to_the_low_mark(capacity: int, available: int) -> None:
    available = min(available, capacity)
    freed = excess(capacity, available)
    assert 0 <= freed <= capacity - available
    if freed:
        assert available + freed == capacity * 20 // 100
