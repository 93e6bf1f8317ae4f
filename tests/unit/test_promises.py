"""What the pages of promises say is shown by tests, and by stories of these, that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("access", "debugging", "network", "several-machines", "workloads")
TABLE = re.compile(r"^\| promise \| tests \|\n\|---\|---\|\n((?:\|.*\|\n)+)", re.MULTILINE)
SHOWN = re.compile(r"`(test_\w+)`(?: \[([^\]]*)\])?")
"""A test, and its stories."""


def rows(page: str) -> list[str]:
    """Of its tables of promises; it may have others."""
    tables = TABLE.findall((ROOT / f"docs/{page}.md").read_text())
    found = [row.strip("| ") for table in tables for row in table.splitlines()]
    assert found, page
    return found


@pytest.mark.parametrize("row", [row for page in PAGES for row in rows(page)], ids=lambda row: row[:40])
def test_every_promise_is_shown_by_tests_that_exist(row: str) -> None:
    promise, shown = row.split(" | ")
    assert promise
    for of_file in shown.split("; "):
        file, tests = of_file.split(": ", 1)
        text = (ROOT / "tests" / file.strip("`")).read_text()
        assert SHOWN.findall(tests) and not SHOWN.sub("", tests).strip(", ")
        for name, stories in SHOWN.findall(tests):
            assert re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), (file, name)
            for story in filter(None, stories.split(", ")):
                assert f'"{story}"' in text, (file, story)
