"""The page of what is compared says what is asked for, of files that are there."""

from __future__ import annotations

from pathlib import Path

from peer import counted

LEAST = 1_500
"""Sequences."""
ROOT = Path(__file__).parents[2]


def test_enough_is_compared() -> None:
    found = counted.documented()
    assert sum(count.sequences for count in found.values()) >= LEAST
    assert counted.rendered(found) == counted.DOCUMENT.read_text()
    assert all((ROOT / "tests/peer" / file).exists() for file in found)
