"""The table of what is served says what the code serves."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_document_is_what_the_code_says() -> None:
    served = runpy.run_path(str(ROOT / "scripts/served.py"))
    assert (ROOT / "docs/served.md").read_text() == served["render"](), "run scripts/served.py"


def test_the_readme_leads_there() -> None:
    assert "(docs/served.md)" in (ROOT / "README.md").read_text()
