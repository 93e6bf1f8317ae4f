"""The page of what is compared says what is asked for, of files that are there; so does the page of what is
promised of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from peer import counted

LEAST = 1_500
"""Sequences."""
ROOT = Path(__file__).parents[2]
PROMISES = ROOT / "docs/beside-kubernetes.md"


def test_enough_is_compared() -> None:
    found = counted.documented()
    assert sum(count.sequences for count in found.values()) >= LEAST
    assert counted.rendered(found) == counted.DOCUMENT.read_text()
    assert all((ROOT / "tests/peer" / file).exists() for file in found)


@pytest.mark.parametrize(
    "row", re.findall(r"^\| (?!promise|---)(.*) \|$", PROMISES.read_text(), re.MULTILINE)
)
def test_every_promise_is_shown_by_tests_of_that_file(row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", row)
    assert named
    for file, tests in named:
        there = set(
            re.findall(r"^(?:async )?def (test_\w+)", (ROOT / "tests" / file).read_text(), re.MULTILINE)
        )
        assert set(re.findall(r"`(\w+)`", tests)) <= there, file


def test_the_readme_leads_to_the_promises() -> None:
    assert f"(docs/{PROMISES.name})" in (ROOT / "README.md").read_text()
