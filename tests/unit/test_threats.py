"""What `docs/threats.md` promises is shown by tests that exist, and for every edge there is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/threats.md").read_text()
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
}
EDGES = ["An anonymous client", "A tenant", "A pod", "A webhook", "Another kubelet", "The disk", "The clock"]
ROWS = re.findall(r"^\| (?!promise|---)(.*) \|$", DOCUMENT, re.MULTILINE)


def test_every_edge_is_there() -> None:
    assert re.findall(r"^## (.*)$", DOCUMENT, re.MULTILINE) == EDGES


@pytest.mark.parametrize("row", ROWS)
def test_every_promise_is_shown_by_tests_that_exist(row: str) -> None:
    named = re.findall(r"`(test_\w+)`", row)
    assert named and set(named) <= TESTS, set(named) - TESTS
