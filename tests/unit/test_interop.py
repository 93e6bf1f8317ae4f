"""The page of what works with what says what the tests' marks say."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_tests_say() -> None:
    interop = runpy.run_path(str(ROOT / "scripts/interop.py"))
    assert (ROOT / "docs/interop.md").read_text() == interop["render"](), "run scripts/interop.py"


def test_the_readme_leads_there() -> None:
    assert "(docs/interop.md)" in (ROOT / "README.md").read_text()
