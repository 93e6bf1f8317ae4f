"""The table of a kubelet's options in `docs/commands.md` says what the options are."""

from __future__ import annotations

import runpy
from pathlib import Path

from podling.kubelet.options.table import LIMITS

ROOT = Path(__file__).parents[2]
OPTIONS = runpy.run_path(str(ROOT / "scripts/options.py"))


def test_the_page_has_each_option_as_the_table_has_it() -> None:
    page = (ROOT / "docs/commands.md").read_text()
    assert page == OPTIONS["put"](page), "run scripts/options.py"
    assert OPTIONS["table"]() in page


def test_a_row_has_names_help_and_default() -> None:
    [row] = [line for line in OPTIONS["table"]().splitlines() if "--max-pods" in line]
    assert row == "| `--max-pods NUMBER` | `maxPods` | How many pods the node takes. | `110` |"
    assert len(OPTIONS["table"]().splitlines()) == len(LIMITS) + 2
